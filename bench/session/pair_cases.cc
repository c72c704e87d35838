// Session/<work>/<rate>: what an always-on session costs its program: the same work without and with it, in turns.
//
// CPU times are compared, which other programs disturb less than the time that passes. A session's first milliseconds,
// when it builds tables and touches its memory for the first time, are left out: Start/100modules has them.
//
//   overhead_percent   of the CPU time of the thread that works: timers, signals, walks, spoiled caches
//   timer_percent      the kernel's part: the same timer, whose samples nothing records (bare_timer.h). On a virtual
//                      machine most of it is the hypervisor's
//   own_percent        the difference: what the session adds
//   process_percent    of the CPU time of the process: the session's own thread, too
#include <benchmark/benchmark.h>
#include <perfkit/session.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "bench/sample/live_work.h"
#include "bench/session/bare_timer.h"
#include "bench/session/cases.h"
#include "bench/support/full_run.h"
#if PERFKIT_BENCH_ZSTD
#include "workload/compression.h"
#endif

namespace bench {
namespace {

using namespace std::chrono_literals;

double SecondsOn(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

struct CpuTimes {
  double thread = 0, process = 0;

  static CpuTimes Now() { return {SecondsOn(CLOCK_THREAD_CPUTIME_ID), SecondsOn(CLOCK_PROCESS_CPUTIME_ID)}; }
};

// 200 ms of the work, or 10 in a short run.
CpuTimes RunWork(const LiveWork& work) {
  const CpuTimes start = CpuTimes::Now();
  for (int i = 0; i < (full_run ? 100 : 5); ++i) work.run();
  const CpuTimes end = CpuTimes::Now();
  return {end.thread - start.thread, end.process - start.process};
}

double MedianPercent(std::vector<double>& ratios) {
  std::sort(ratios.begin(), ratios.end());
  return 100 * (ratios[ratios.size() / 2] - 1);
}

void Pairs(benchmark::State& state, const LiveWork& work, const perfkit::SessionOptions& options) {
  std::vector<double> thread, timer, own, process;
  uint64_t samples = 0, whole = 0;
  for (auto _ : state) {
    const CpuTimes off = RunWork(work);
    std::optional<BareTimer> bare(options.interval);
    if (!bare->opened()) return state.SkipWithError("the clock can't be sampled");
    const CpuTimes timed = RunWork(work);
    bare.reset();
    auto session = perfkit::Session::Start(options);
    if (!session.ok()) return state.SkipWithError(std::string(session.status().message()).c_str());
    for (int i = 0; i < (full_run ? 25 : 5); ++i) work.run();
    const CpuTimes on = RunWork(work);
    const auto profile = session->Stop();
    if (!profile.ok()) return state.SkipWithError(std::string(profile.status().message()).c_str());
    for (const perfkit::ProfileSample& sample : profile->samples) {
      samples += sample.samples;
      whole += sample.quality == perfkit::StackQuality::kWhole ? sample.samples : 0;
    }
    state.SetIterationTime(on.thread);
    thread.push_back(on.thread / off.thread);
    timer.push_back(timed.thread / off.thread);
    own.push_back(1 + (on.thread - timed.thread) / off.thread);
    process.push_back(on.process / off.process);
  }
  state.counters["overhead_percent"] = MedianPercent(thread);
  state.counters["timer_percent"] = MedianPercent(timer);
  state.counters["own_percent"] = MedianPercent(own);
  state.counters["process_percent"] = MedianPercent(process);
  state.counters["whole_percent"] = samples == 0 ? 0 : 100 * static_cast<double>(whole) / static_cast<double>(samples);
}

void Register(const LiveWork& work, const char* rate, const perfkit::SessionOptions& options) {
  const int pairs = full_run ? 21 : 1;
  benchmark::RegisterBenchmark((std::string("Session/") + work.name + "/" + rate).c_str(),
                               [&work, options](benchmark::State& state) { Pairs(state, work, options); })
      ->UseManualTime()
      ->Iterations(pairs)
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
