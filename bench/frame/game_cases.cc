// Game/<rate>: what a recorder that is always on costs a game none of whose frames is slow. Four games, the same to
// the last brick, take turns, frame by frame and in random order: one without anything, one with the kernel's bare
// sampling, one with its bare signals, and one with a session that keeps slow frames. So a frame is compared with
// itself, a few milliseconds apart.
//
// Measures the elapsed time of frames, which is what users see, and the CPU time of the thread that marks them, which
// other programs disturb less. Means are compared ten frames at a time, percentiles a game at a time. Each number is
// the median of these ratios, with the interval of 95 % confidence, "low" and "high":
//
//   overhead_percent   the session's mean frame, to the one without it
//   timer_percent      the kernel's part, likewise (bare_sampling.h); in virtual machines mostly the hypervisor's
//   signal_percent     the same with a signal at each sample, and an empty handler
//   own_percent        the session's mean frame, to the one with the bare sampling
//   p99_percent        of 100 frames the second longest, to that without the session
//   timer_p99_percent  the same of the bare sampling
//   cpu_percent        the CPU time of the thread that marks frames, to that without the session
//
// Game/1khz_all: the session also records wakers with their stacks, and page faults with their memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/frame/cases.h"
#include "bench/frame/game_turns.h"
#include "bench/support/full_run.h"
#include "bench/support/paired.h"

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr int kWarmFrames = 20;
constexpr size_t kBlock = 10;  // frames

constexpr std::array kVariants = {Sampling::kNone, Sampling::kBare, Sampling::kSignals, Sampling::kRecorder};
enum { kOff, kTimer, kSignal, kSession };  // indexes of them

using Frames = std::span<const TurnCost>;

double SecondLongestOf100(Frames frames) {
  std::vector<double> lengths;
  for (const TurnCost& frame : frames) lengths.push_back(frame.wall_ns);
  std::sort(lengths.begin(), lengths.end());
  return lengths[lengths.size() - 1 - lengths.size() / 100];
}

// Adds the ratios of a game of each variant.
void AddGames(PairedRatios& ratios, const std::array<Frames, kVariants.size()>& played) {
  for (size_t from = 0; from < played[kOff].size(); from += kBlock) {
    const auto ratio = [&](size_t of, size_t to, double TurnCost::*field) {
      const size_t frames = std::min(kBlock, played[kOff].size() - from);
      return Sum(played[of].subspan(from, frames), field) / Sum(played[to].subspan(from, frames), field);
    };
    ratios.Add("overhead", ratio(kSession, kOff, &TurnCost::wall_ns));
    ratios.Add("timer", ratio(kTimer, kOff, &TurnCost::wall_ns));
    ratios.Add("signal", ratio(kSignal, kOff, &TurnCost::wall_ns));
    ratios.Add("own", ratio(kSession, kTimer, &TurnCost::wall_ns));
    ratios.Add("cpu", ratio(kSession, kOff, &TurnCost::cpu_ns));
  }
  const double off = SecondLongestOf100(played[kOff]);
  ratios.Add("p99", SecondLongestOf100(played[kSession]) / off);
  ratios.Add("timer_p99", SecondLongestOf100(played[kTimer]) / off);
}

// Plays a game of each variant. `options`: those of the session's.
absl::StatusOr<std::vector<std::vector<TurnCost>>> PlayRound(GameOptions options, std::mt19937& random) {
  std::vector<TurnProcess> processes;
  for (const Sampling sampling : kVariants) {
    options.sampling = sampling;
    absl::StatusOr<TurnProcess> process = StartGame(options);
    if (!process.ok()) return process.status();
    processes.push_back(*std::move(process));
  }
  return TakeTurns(processes, options.frames, random);
}

void PlayRounds(benchmark::State& state, const GameOptions& options) {
  PairedRatios ratios;
  std::mt19937 random(1);
  for (auto _ : state) {
    const auto round = PlayRound(options, random);
    if (!round.ok()) return state.SkipWithError(std::string(round.status().message()).c_str());
    std::array<Frames, kVariants.size()> played;
    for (size_t i = 0; i < played.size(); ++i) played[i] = Frames((*round)[i]).subspan(kWarmFrames);
    AddGames(ratios, played);
    const Frames frames = played[kSession];
    state.SetIterationTime(1e-9 * Sum(frames, &TurnCost::wall_ns) / static_cast<double>(frames.size()));
  }
  ratios.Report(state.counters);
}

}  // namespace

void RegisterGameCases() {
  const auto add = [&](const char* name, GameOptions options) {
    options.frames = kWarmFrames + (full_run ? 200 : 5);
    benchmark::RegisterBenchmark(name, PlayRounds, options)
        ->UseManualTime()
        ->Iterations(full_run ? 21 : 1)
        ->Unit(benchmark::kMillisecond);
  };
  add("Game/1khz", {.interval = 1ms});
  add("Game/200hz", {.interval = 5ms});
  add("Game/1khz_all", {.interval = 1ms, .all = true});
}

}  // namespace bench
