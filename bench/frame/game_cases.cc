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
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/frame/cases.h"
#include "bench/frame/game_process.h"
#include "bench/frame/paired.h"
#include "bench/support/full_run.h"

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr int kWarmFrames = 20;
constexpr size_t kBlock = 10;  // frames

constexpr std::array kVariants = {Sampling::kNone, Sampling::kBare, Sampling::kSignals, Sampling::kRecorder};
enum { kOff, kTimer, kSignal, kSession };  // indexes of them

using Frames = std::vector<PlayedFrame>;
using Rounds = std::array<Frames, kVariants.size()>;

double Sum(const Frames& frames, size_t from, size_t to, double PlayedFrame::*what) {
  double sum = 0;
  for (size_t i = from; i < to; ++i) sum += frames[i].*what;
  return sum;
}

double SecondLongestOf100(const Frames& frames) {
  std::vector<double> lengths;
  for (const PlayedFrame& frame : frames) lengths.push_back(frame.wall_ns);
  std::sort(lengths.begin(), lengths.end());
  return lengths[lengths.size() - 1 - lengths.size() / 100];
}

class GameRatios {
 public:
  // Adds a game of each variant.
  void Add(const Rounds& played) {
    const size_t frames = played[kOff].size();
    for (size_t from = 0; from < frames; from += kBlock) {
      const auto ratio = [&](size_t of, size_t to, double PlayedFrame::*what) {
        const size_t end = std::min(from + kBlock, frames);
        return Sum(played[of], from, end, what) / Sum(played[to], from, end, what);
      };
      ratios_["overhead"].push_back(ratio(kSession, kOff, &PlayedFrame::wall_ns));
      ratios_["timer"].push_back(ratio(kTimer, kOff, &PlayedFrame::wall_ns));
      ratios_["signal"].push_back(ratio(kSignal, kOff, &PlayedFrame::wall_ns));
      ratios_["own"].push_back(ratio(kSession, kTimer, &PlayedFrame::wall_ns));
      ratios_["cpu"].push_back(ratio(kSession, kOff, &PlayedFrame::cpu_ns));
    }
    const double off = SecondLongestOf100(played[kOff]);
    ratios_["p99"].push_back(SecondLongestOf100(played[kSession]) / off);
    ratios_["timer_p99"].push_back(SecondLongestOf100(played[kTimer]) / off);
  }
  void Report(benchmark::UserCounters& counters) const {
    for (const auto& [name, ratios] : ratios_) {
      const PairedRatio ratio = MedianRatio(ratios);
      counters[name + "_percent"] = 100 * (ratio.median - 1);
      counters[name + "_low"] = 100 * (ratio.low - 1);
      counters[name + "_high"] = 100 * (ratio.high - 1);
    }
  }

 private:
  std::map<std::string, std::vector<double>> ratios_;
};

// Plays a game of each variant. `options`: those of the session's.
absl::StatusOr<Rounds> PlayRound(GameProcessOptions options, std::mt19937& random) {
  std::vector<GameProcess> processes;
  for (const Sampling sampling : kVariants) {
    options.sampling = sampling;
    absl::StatusOr<GameProcess> process = GameProcess::Start(options);
    if (!process.ok()) return process.status();
    processes.push_back(*std::move(process));
  }
  Rounds played;
  std::array<size_t, kVariants.size()> order = {kOff, kTimer, kSignal, kSession};
  for (int frame = 0; frame < options.frames; ++frame) {
    std::shuffle(order.begin(), order.end(), random);
    for (const size_t variant : order) {
      const absl::StatusOr<PlayedFrame> one = processes[variant].PlayFrame();
      if (!one.ok()) return one.status();
      if (frame >= kWarmFrames) played[variant].push_back(*one);
    }
  }
  return played;
}

void PlayRounds(benchmark::State& state, const GameProcessOptions& options) {
  GameRatios ratios;
  std::mt19937 random(1);
  for (auto _ : state) {
    const absl::StatusOr<Rounds> played = PlayRound(options, random);
    if (!played.ok()) return state.SkipWithError(std::string(played.status().message()).c_str());
    const Frames& frames = (*played)[kSession];
    ratios.Add(*played);
    state.SetIterationTime(1e-9 * Sum(frames, 0, frames.size(), &PlayedFrame::wall_ns) /
                           static_cast<double>(frames.size()));
  }
  ratios.Report(state.counters);
}

}  // namespace

void RegisterGameCases() {
  const auto add = [&](const char* name, GameProcessOptions options) {
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
