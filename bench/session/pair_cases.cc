// Session/<work>/<rate>: what an always-on session costs its program. Four processes do the same work: one without
// anything, one with the kernel's bare timer, one with its bare signals, and one with a session. They take turns of
// about 10 ms, in random order, so that work is compared with itself, some milliseconds apart. A session's first
// milliseconds, when it builds tables and touches its memory for the first time, are left out: Start/100modules has
// them.
//
// CPU times are compared, which other programs disturb less than the time that passes, ten turns at a time. A number
// is the median of such ratios, with the interval of 95 % confidence, "low" and "high":
//
//   overhead_percent   of the CPU time of the thread that works: timers, signals, walks, spoiled caches
//   timer_percent      the kernel's part: the same timer, whose samples nothing records (bare_timer.h). On a virtual
//                      machine most of it is the hypervisor's
//   signal_percent     a signal at each sample, with an empty handler (bare_sampling.h): the minimum for live stacks
//   own_percent        the session's turns, to those with the timer: what the session adds
//   process_percent    of the CPU time of the process: the session's own thread, too, also while others have their
//   turns
//
// whole_percent is the share of samples whose stack reached its root.
#include <benchmark/benchmark.h>
#include <perfkit/session.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <new>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/sample/live_work.h"
#include "bench/session/bare_timer.h"
#include "bench/session/cases.h"
#include "bench/support/bare_sampling.h"
#include "bench/support/full_run.h"
#include "bench/support/paired.h"
#include "bench/support/turn_process.h"
#if PERFKIT_BENCH_ZSTD
#include "workload/compression.h"
#endif

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr int kWarmTurns = 5;
constexpr size_t kBlock = 10;  // turns

enum Variant { kOff, kTimer, kSignal, kSession };

struct StackCounts {
  uint64_t samples = 0, whole = 0;
};

// Memory that children share with their parent; nullptr if there is none.
StackCounts* SharedCounts() {
  void* const memory = mmap(nullptr, sizeof(StackCounts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : new (memory) StackCounts;
}

// In the child. Returns false, and says why, if the work can't be sampled.
bool WorkInTurns(Variant variant, const LiveWork& work, const perfkit::SessionOptions& options, StackCounts& counts,
                 Turns& turns) {
  std::optional<BareTimer> bare;
  if (variant == kTimer && !bare.emplace(options.interval).opened()) return false;
  std::optional<BareSampling> signals;
  if (variant == kSignal && !signals.emplace(options.interval, true).opened()) return false;
  const auto take = [&] {
    return turns.Take([&work] {
      for (int i = 0; i < 5; ++i) work.run();
    });
  };
  if (variant != kSession) return take();
  auto session = perfkit::Session::Start(options);
  if (!session.ok()) return fprintf(stderr, "%s\n", session.status().ToString().c_str()), false;
  if (!take()) return false;
  const auto profile = session->Stop();
  if (!profile.ok()) return fprintf(stderr, "%s\n", profile.status().ToString().c_str()), false;
  for (const perfkit::ProfileSample& sample : profile->samples) {
    counts.samples += sample.samples;
    counts.whole += sample.quality == perfkit::StackQuality::kWhole ? sample.samples : 0;
  }
  return true;
}

// Returns the turns of each variant, without the first ones.
absl::StatusOr<std::vector<std::vector<TurnCost>>> WorkRound(const LiveWork& work,
                                                             const perfkit::SessionOptions& options,
                                                             StackCounts& counts, std::mt19937& random) {
  std::vector<TurnProcess> processes;
  for (const Variant variant : {kOff, kTimer, kSignal, kSession}) {
    absl::StatusOr<TurnProcess> process =
        TurnProcess::Start([&](Turns& turns) { return WorkInTurns(variant, work, options, counts, turns); });
    if (!process.ok()) return process.status();
    processes.push_back(*std::move(process));
  }
  const absl::StatusOr<std::vector<std::vector<TurnCost>>> warm = TakeTurns(processes, kWarmTurns, random);
  return warm.ok() ? TakeTurns(processes, full_run ? 20 : 1, random) : warm;
}

void Pairs(benchmark::State& state, const LiveWork& work, const perfkit::SessionOptions& options) {
  PairedRatios ratios;
  std::mt19937 random(1);
  StackCounts* const counts = SharedCounts();
  if (counts == nullptr) return state.SkipWithError("no memory to share with children");
  for (auto _ : state) {
    const auto turns = WorkRound(work, options, *counts, random);
    if (!turns.ok()) return state.SkipWithError(std::string(turns.status().message()).c_str());
    for (size_t from = 0; from < (*turns)[kOff].size(); from += kBlock) {
      const auto ratio = [&](Variant of, Variant to, double TurnCost::*field) {
        const size_t count = std::min(kBlock, (*turns)[kOff].size() - from);
        const auto sum = [&](Variant variant) { return Sum(std::span((*turns)[variant]).subspan(from, count), field); };
        return sum(of) / sum(to);
      };
      ratios.Add("overhead", ratio(kSession, kOff, &TurnCost::cpu_ns));
      ratios.Add("timer", ratio(kTimer, kOff, &TurnCost::cpu_ns));
      ratios.Add("signal", ratio(kSignal, kOff, &TurnCost::cpu_ns));
      ratios.Add("own", ratio(kSession, kTimer, &TurnCost::cpu_ns));
      ratios.Add("process", ratio(kSession, kOff, &TurnCost::process_ns));
    }
    state.SetIterationTime(1e-9 * Sum((*turns)[kSession], &TurnCost::cpu_ns));
  }
  ratios.Report(state.counters);
  state.counters["whole_percent"] =
      counts->samples == 0 ? 0 : 100 * static_cast<double>(counts->whole) / static_cast<double>(counts->samples);
  munmap(counts, sizeof(*counts));
}

void Register(const LiveWork& work, const char* rate, const perfkit::SessionOptions& options) {
  benchmark::RegisterBenchmark((std::string("Session/") + work.name + "/" + rate).c_str(),
                               [&work, options](benchmark::State& state) { Pairs(state, work, options); })
      ->UseManualTime()
      ->Iterations(full_run ? 21 : 1)
      ->Unit(benchmark::kMillisecond);
}

// 1,000 calls deep; works at the innermost one as an interpreter does.
[[gnu::noinline]] int Descend(int depth, const LiveWork& work) {
  if (depth == 0) {
    work.run();
    return 0;
  }
  const int below = Descend(depth - 1, work);
  benchmark::DoNotOptimize(below);
  return below + 1;
}

#if PERFKIT_BENCH_ZSTD
// Three blocks, at levels 1, 2 and 3.
void CompressBlocks() {
  static const std::string text = workload::ReadCorpus(1 << 20);
  static workload::Compressor compressor;
  for (size_t block = 0; block < 3; ++block) benchmark::DoNotOptimize(compressor.Compress(text, block));
}

constexpr LiveWork kZstdWork = {"zstd", CompressBlocks};
#endif

constexpr LiveWork kDeepWork = {"deep1000", [] { benchmark::DoNotOptimize(Descend(1'000, LiveWorks()[1])); }};

}  // namespace

void RegisterSessionCases() {
  const auto both_rates = [](const LiveWork& work) {
    Register(work, "100hz", {.interval = 10ms});
    Register(work, "1khz", {.interval = 1ms});
  };
  for (const LiveWork& work : LiveWorks()) both_rates(work);
#if PERFKIT_BENCH_ZSTD
  both_rates(kZstdWork);
#endif
  Register(kDeepWork, "1khz", {.interval = 1ms});
}

}  // namespace bench
