// Lock/bare, Lock/wrapped: a mutex that no other thread wants is locked and unlocked, in a process with other threads.
// Lock/recorded: the same while a session records waits. Lock/alone: the same in a process with one thread.
// Lock/contended: threads take the mutex from each other. The last two take turns with the C library's own functions,
// and tell by counters what the component adds:
//
//   extra_ns    nanoseconds for a lock and an unlock
//   ratio       of wall times, for sections of about 1 us, while waits of 10 us or more are recorded and read
//   ratio_off   the same while nothing is recorded
//   ratio_tight the same as `ratio` for empty sections
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "bench/support/parked_threads.h"
#include "src/sys/lock_waits.h"

namespace bench {
namespace {

struct MutexCalls {
  int (*lock)(pthread_mutex_t*);
  int (*unlock)(pthread_mutex_t*);
};

MutexCalls Wrapped() { return {pthread_mutex_lock, pthread_mutex_unlock}; }

MutexCalls Bare() {
  const auto find = [](const char* name) { return reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, name)); };
  return {find("pthread_mutex_lock"), find("pthread_mutex_unlock")};
}

double NowNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

void Uncontended(benchmark::State& state, MutexCalls (*calls_of)(), bool records) {
  const perfkit::sys::LockWaitSource& source = *perfkit::sys::LockWaits();
  if (records && !source.start(10'000)) return state.SkipWithError("waits are recorded already");
  const ParkedThreads other(1, [] {});
  const MutexCalls calls = calls_of();
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  int64_t guarded = 0;
  for (auto _ : state) {
    calls.lock(&mutex);
    benchmark::DoNotOptimize(++guarded);
    calls.unlock(&mutex);
  }
  if (records) source.stop();
}
BENCHMARK_CAPTURE(Uncontended, bare, Bare, false)->Name("Lock/bare");
BENCHMARK_CAPTURE(Uncontended, wrapped, Wrapped, false)->Name("Lock/wrapped");
BENCHMARK_CAPTURE(Uncontended, recorded, Wrapped, true)->Name("Lock/recorded");

// CPU time of a pair of calls.
double PairNs(const MutexCalls& calls) {
  constexpr int kPairs = 500'000;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  int64_t guarded = 0;
  const double start_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < kPairs; ++i) {
    calls.lock(&mutex);
    benchmark::DoNotOptimize(++guarded);
    calls.unlock(&mutex);
  }
  return (NowNs(CLOCK_THREAD_CPUTIME_ID) - start_ns) / kPairs;
}

// In a forked child, which has one thread: the C library then locks without atomic instructions. Returns what the
// component adds to a pair of calls; a negative number may be noise.
double ExtraAlone() {
  int ends[2];
  if (pipe(ends) != 0) return 1e9;
  const pid_t child = fork();
  if (child == 0) {
    std::vector<double> extra;
    for (int i = 0; i < 21; ++i) {
      const double bare_ns = PairNs(Bare());
      extra.push_back(PairNs(Wrapped()) - bare_ns);
    }
    const double median = Median(extra);
    _exit(write(ends[1], &median, sizeof median) == sizeof median ? 0 : 1);
  }
  double extra_ns = 1e9;
  if (child < 0 || read(ends[0], &extra_ns, sizeof extra_ns) != sizeof extra_ns) extra_ns = 1e9;
  waitpid(child, nullptr, 0);
  close(ends[0]), close(ends[1]);
  return extra_ns;
}

void Alone(benchmark::State& state) {
  double extra_ns = 0;
  for (auto _ : state) {
    extra_ns = ExtraAlone();
    state.SetIterationTime(21e-3);
  }
  state.counters["extra_ns"] = extra_ns;
}
BENCHMARK(Alone)->Name("Lock/alone")->Iterations(1)->UseManualTime();

void Spin(double ns) {
  if (ns == 0) return;
  const double until_ns = NowNs(CLOCK_MONOTONIC) + ns;
  while (NowNs(CLOCK_MONOTONIC) < until_ns) {
  }
}

// Wall time of all threads' rounds.
double ContendedNs(const MutexCalls& calls, double section_ns, int rounds) {
  const unsigned count = std::clamp(std::thread::hardware_concurrency(), 2U, 4U);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  std::atomic<unsigned> ready{0};
  int64_t guarded = 0;
  std::vector<std::thread> threads;
  std::atomic<double> start_ns{0};
  for (unsigned i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      if (++ready == count) start_ns = NowNs(CLOCK_MONOTONIC);
      while (ready < count) {
      }
      for (int round = 0; round < rounds; ++round) {
        calls.lock(&mutex);
        benchmark::DoNotOptimize(++guarded);
        Spin(section_ns);
        calls.unlock(&mutex);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return NowNs(CLOCK_MONOTONIC) - start_ns;
}

double ContendedRatio(bool records, double section_ns, int rounds) {
  const perfkit::sys::LockWaitSource& source = *perfkit::sys::LockWaits();
  std::vector<double> ratios;
  for (int i = 0; i < 11; ++i) {
    const bool bare_first = i % 2 == 0;
    double bare_ns = bare_first ? ContendedNs(Bare(), section_ns, rounds) : 0;
    if (records && !source.start(10'000)) return 1e9;
    const double wrapped_ns = ContendedNs(Wrapped(), section_ns, rounds);
    perfkit::sys::LockWait wait;
    while (records && source.take(wait)) {
    }
    if (records) source.stop();
    if (!bare_first) bare_ns = ContendedNs(Bare(), section_ns, rounds);
    ratios.push_back(wrapped_ns / bare_ns);
  }
  return Median(ratios);
}

void Contended(benchmark::State& state) {
  for (auto _ : state) {
    state.counters["ratio"] = ContendedRatio(true, 1000, 4000);
    state.counters["ratio_off"] = ContendedRatio(false, 1000, 4000);
    state.counters["ratio_tight"] = ContendedRatio(true, 0, 20'000);
    state.SetIterationTime(1e-3);
  }
}
BENCHMARK(Contended)->Name("Lock/contended")->Iterations(1)->UseManualTime();

}  // namespace
}  // namespace bench
