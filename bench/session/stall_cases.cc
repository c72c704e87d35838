// Snapshot/<mode>: how long a sampled thread stands still while another one takes a snapshot. Look/blocked: a look at a
// thread that sleeps, of the CPU time of the thread that looks; with _anew, the first look at it.
#include <benchmark/benchmark.h>
#include <perfkit/session.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include "bench/support/parked_threads.h"
#include "src/session/blocked_look.h"
#include "src/session/look_files.h"
#include "src/session/stack_hooks.h"

namespace bench {
namespace {

uint64_t NowNs(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// A thread that reads the clock all the time, and knows the longest time between two reads.
class ClockReader {
 public:
  ~ClockReader() {
    quit_ = true;
    thread_.join();
  }
  // Begins anew; returns the longest time so far.
  uint64_t TakeLongestNs() { return longest_ns_.exchange(0, std::memory_order_relaxed); }

 private:
  void Read() {
    for (uint64_t last = NowNs(CLOCK_MONOTONIC); !quit_;) {
      const uint64_t now = NowNs(CLOCK_MONOTONIC);
      if (now - last > longest_ns_.load(std::memory_order_relaxed)) longest_ns_ = now - last;
      last = now;
    }
  }

  std::atomic<bool> quit_{false};
  std::atomic<uint64_t> longest_ns_{0};
  std::thread thread_{[this] { Read(); }};
};

double MedianUs(std::vector<uint64_t>& values) {
  std::erase(values, 0);  // the reader was off its CPU all the time
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : static_cast<double>(values[values.size() / 2]) / 1000;
}

// The medians of the longest gaps during a snapshot, and during as long a time without one.
void Stall(benchmark::State& state, perfkit::RingMode mode) {
  ClockReader reader;
  perfkit::SessionOptions options{.mode = mode};
  if (mode == perfkit::RingMode::kOverwrite) options.memory_bytes = 8 << 20;
  auto session = perfkit::Session::Start(options);
  if (!session.ok()) return state.SkipWithError(std::string(session.status().message()).c_str());
  std::vector<uint64_t> during, without;
  for (auto _ : state) {
    reader.TakeLongestNs();
    const uint64_t begin = NowNs(CLOCK_MONOTONIC);
    if (!session->Snapshot().ok()) return state.SkipWithError("no snapshot");
    const uint64_t took = NowNs(CLOCK_MONOTONIC) - begin;
    during.push_back(reader.TakeLongestNs());
    state.SetIterationTime(1e-9 * static_cast<double>(took));
    std::this_thread::sleep_for(std::chrono::nanoseconds(took));
    without.push_back(reader.TakeLongestNs());
  }
  state.counters["stall_us"] = MedianUs(during);
  state.counters["without_us"] = MedianUs(without);
}

// `anew`: at a thread whose files are not kept open.
void LookBlocked(benchmark::State& state, bool anew) {
  const perfkit::StackHooks* const hooks = &perfkit::StackHookTable;
  if (hooks == nullptr) return state.SkipWithError("perfkit::dwarf is not linked");
  const std::unique_ptr<perfkit::StackUnwinder> unwinder = hooks->unwinder(0);
  const ParkedThreads parked(1, [] {});
  const auto pid = static_cast<uint32_t>(getpid());
  const pid_t tid = parked.tids()[0];
  std::array<perfkit::StackFrame, 512> frames;
  perfkit::session::LookFiles files;
  uint64_t looks = 0;
  for (auto _ : state) {
    const uint64_t begin = NowNs(CLOCK_THREAD_CPUTIME_ID);
    if (anew) files.Forget(tid);
    looks += perfkit::session::LookAtBlocked(pid, files.Of(tid), unwinder.get(), frames).has_value();
    state.SetIterationTime(1e-9 * static_cast<double>(NowNs(CLOCK_THREAD_CPUTIME_ID) - begin));
  }
  state.counters["accepted"] = static_cast<double>(looks) / static_cast<double>(state.iterations());
}

BENCHMARK_CAPTURE(Stall, stream, perfkit::RingMode::kStream)->Name("Snapshot/stream")->UseManualTime()->Iterations(101);
BENCHMARK_CAPTURE(Stall, overwrite, perfkit::RingMode::kOverwrite)
    ->Name("Snapshot/overwrite")
    ->UseManualTime()
    ->Iterations(101);
BENCHMARK_CAPTURE(LookBlocked, blocked, false)->Name("Look/blocked")->UseManualTime();
BENCHMARK_CAPTURE(LookBlocked, anew, true)->Name("Look/blocked_anew")->UseManualTime();

}  // namespace
}  // namespace bench
