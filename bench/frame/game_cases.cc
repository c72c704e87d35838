// Game/<rate>: what a recorder that is always on costs a game none of whose frames is slow. Each round plays the same
// game three times, in random order: without anything, with the kernel's bare sampling, and with a session that keeps
// slow frames. The game is the same to the last brick, so that a frame is compared with itself.
//
// Measures the elapsed time of frames, which is what users see, and the CPU time of the thread that marks them, which
// other programs disturb less. Each number comes with the interval of 95 % confidence, "low" and "high":
//
//   overhead_percent   the session's mean frame, to the one without it
//   timer_percent      the kernel's part, likewise (bare_sampling.h); on a virtual machine most of it is the hypervisor's
//   own_percent        the session's mean frame, to the one with the bare sampling
//   p99_percent        of 100 frames the second longest, to that without the session
//   timer_p99_percent  the same of the bare sampling
//   cpu_percent        the CPU time of the thread that marks frames, to that without the session
//
// Game/1khz_all: the session also records wakers with their stacks, and page faults with their memory.
#include <benchmark/benchmark.h>
#include <perfkit/session.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/frame/bare_sampling.h"
#include "bench/frame/cases.h"
#include "bench/frame/paired.h"
#include "bench/support/full_run.h"
#include "game.h"
#include "screen.h"

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr int kWarmFrames = 20;

enum Variant { kOff, kTimer, kSession, kVariants };

struct Recording {
  std::chrono::nanoseconds interval{};
  bool all = false;  // also wakers, their stacks, and page faults
};

struct Played {
  double frame_ns = 0, p99_ns = 0, cpu_ns = 0;  // the mean, the second longest of 100, the mean
};

Played Measure(const perfkit::FrameHistory& history, int frames) {
  Played played;
  std::vector<double> lengths;
  for (size_t i = history.size() - static_cast<size_t>(frames); i < history.size(); ++i) {
    lengths.push_back(static_cast<double>(history[i].wall_ns));
    played.frame_ns += lengths.back() / frames;
    played.cpu_ns += static_cast<double>(history[i].values[0]) / frames;  // task-clock is the game's first event
  }
  std::sort(lengths.begin(), lengths.end());
  played.p99_ns = lengths[lengths.size() - 1 - lengths.size() / 100];
  return played;
}

// nullopt, with `error`, if it can't be measured here.
std::optional<Played> Play(game::Screen& screen, Variant variant, const Recording& recording, int frames,
                           std::string* error) {
  std::optional<BareSampling> timer;
  if (variant == kTimer && !timer.emplace(recording.interval).opened()) {
    *error = "the clock can't be sampled";
    return std::nullopt;
  }
  game::Game game(screen, {.frames = kWarmFrames + frames});
  std::optional<perfkit::Session> session;
  if (variant == kSession) {
    absl::StatusOr<perfkit::Session> started = perfkit::Session::Start({.interval = recording.interval,
                                                                        .clock = perfkit::SessionClock::kWall,
                                                                        .stacks = perfkit::SessionStacks::kLive,
                                                                        .frames = &game.frames(),
                                                                        .keep = perfkit::KeepFrames{},
                                                                        .wakers = recording.all,
                                                                        .waker_stacks = recording.all,
                                                                        .page_faults = recording.all});
    if (!started.ok()) {
      *error = std::string(started.status().message());
      return std::nullopt;
    }
    session.emplace(*std::move(started));
  }
  game.Run();
  return Measure(game.frames().history(), frames);
}

class GameRounds {
 public:
  void Add(const std::array<Played, kVariants>& played) {
    const Played &off = played[kOff], &timer = played[kTimer], &on = played[kSession];
    ratios_["overhead"].push_back(on.frame_ns / off.frame_ns);
    ratios_["timer"].push_back(timer.frame_ns / off.frame_ns);
    ratios_["own"].push_back(on.frame_ns / timer.frame_ns);
    ratios_["p99"].push_back(on.p99_ns / off.p99_ns);
    ratios_["timer_p99"].push_back(timer.p99_ns / off.p99_ns);
    ratios_["cpu"].push_back(on.cpu_ns / off.cpu_ns);
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

void PlayRounds(benchmark::State& state, const Recording& recording, int frames) {
  game::Screen screen;
  if (!screen.ok()) return state.SkipWithError("no screen");
  GameRounds rounds;
  std::mt19937 random(1);
  for (auto _ : state) {
    std::array<Variant, kVariants> order = {kOff, kTimer, kSession};
    std::shuffle(order.begin(), order.end(), random);
    std::array<Played, kVariants> played;
    for (const Variant variant : order) {
      std::string error;
      const std::optional<Played> one = Play(screen, variant, recording, frames, &error);
      if (!one) return state.SkipWithError(error.c_str());
      played[variant] = *one;
    }
    rounds.Add(played);
    state.SetIterationTime(1e-9 * played[kSession].frame_ns);
  }
  rounds.Report(state.counters);
}

}  // namespace

void RegisterGameCases() {
  const auto add = [&](const char* name, const Recording& recording) {
    benchmark::RegisterBenchmark(name, PlayRounds, recording, full_run ? 200 : 5)
        ->UseManualTime()
        ->Iterations(full_run ? 21 : 1)
        ->Unit(benchmark::kMillisecond);
  };
  add("Game/1khz", {.interval = 1ms});
  add("Game/200hz", {.interval = 5ms});
  add("Game/1khz_all", {.interval = 1ms, .all = true});
}

}  // namespace bench
