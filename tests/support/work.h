// Work of known cost: pages to touch, sleeps, calls, and the kernel's own counters for comparison.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "src/base/sanitizers.h"

namespace perfkit::testing {

// A sanitizer's runtime faults on memory of its own, and has a thread and an allocator of its own.
#if PERFKIT_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// ThreadSanitizer does not see code that runs in handlers, nor its atomics: src/base/in_handler.h.
#if PERFKIT_SANITIZED_THREAD
inline constexpr bool kHandlersUnseen = true;
#else
inline constexpr bool kHandlersUnseen = false;
#endif

// ThreadSanitizer ends a forked child that starts a thread.
inline constexpr bool kThreadsAfterFork = !kHandlersUnseen;

// Memory of `pages` fresh pages, none of them huge, which fault one by one when they are touched.
class FreshPages {
 public:
  explicit FreshPages(size_t pages) : size_(pages * kPage) {
    memory_ = static_cast<char*>(mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    madvise(memory_, size_, MADV_NOHUGEPAGE);
  }
  ~FreshPages() { munmap(memory_, size_); }
  FreshPages(const FreshPages&) = delete;
  FreshPages& operator=(const FreshPages&) = delete;

  // Not instrumented: a sanitizer would also touch its shadow of each page.
  __attribute__((noinline, no_sanitize("thread", "address"))) void Touch(size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) *static_cast<volatile char*>(memory_ + i * kPage) = 1;
  }
  // Makes all pages fault again.
  void Forget() { madvise(memory_, size_, MADV_DONTNEED); }

  char* data() const { return memory_; }
  size_t pages() const { return size_ / kPage; }

 private:
  static constexpr size_t kPage = 4096;
  size_t size_;
  char* memory_;
};

// Counts a thread's (or, with RUSAGE_SELF, the process's) faults beside the pages that a test touches: code that runs
// for the first time, or whose page the kernel took back, and a stack that grows. By the kernel's own count, from
// construction.
class OtherFaults {
 public:
  explicit OtherFaults(int who = RUSAGE_THREAD) : who_(who), begin_(Faults()) {}

  // Returns the number of other faults, if the test has touched `pages` of its own.
  uint64_t Beside(uint64_t pages) const {
    const uint64_t faults = Faults() - begin_;
    return faults > pages ? faults - pages : 0;
  }

 private:
  uint64_t Faults() const {
    rusage usage{};
    getrusage(static_cast<__rusage_who>(who_), &usage);
    return static_cast<uint64_t>(usage.ru_minflt + usage.ru_majflt);
  }

  int who_;
  uint64_t begin_;
};

// Returns true if `faults` are those of touching `pages`, and at most `others` more. A sanitizer's runtime sometimes
// adds its own.
inline bool AreFaultsOf(uint64_t faults, uint64_t pages, uint64_t others = 0) {
  return faults >= pages && faults <= pages + others + (kSanitized ? 100 : 0);
}

// Returns faults per iteration, for the same comparison: those of a sanitizer's runtime spread over many iterations.
inline double FaultsAnIteration(double measured) { return kSanitized ? std::floor(measured) : measured; }

// A loop that the compiler does not remove.
inline uint64_t Spin(uint64_t rounds) {
  uint64_t x = 1;
  for (uint64_t i = 0; i < rounds; ++i) {
    x = x * 6364136223846793005u + 1;
    asm volatile("" : "+r"(x));
  }
  return x;
}

inline void Sleep(long ns) {
  const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
  nanosleep(&time, nullptr);
}

// Returns the voluntary and involuntary switches of this thread so far.
inline uint64_t SwitchesByUsage() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw);
}

// Returns the involuntary ones among them: another thread was given the CPU.
inline uint64_t PreemptionsByUsage() {
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  return static_cast<uint64_t>(usage.ru_nivcsw);
}

// Leaves the CPU at least `times` times, by the kernel's own counters. On a fast machine, or if a host takes the CPU
// away meanwhile, a short sleep ends before its thread has left the CPU: then the next one is longer.
inline void SwitchAway(int times = 1) {
  constexpr long kMaxSleepNs = 1'000'000;
  long ns = 1000;
  uint64_t switches = SwitchesByUsage();
  const uint64_t enough = switches + static_cast<uint64_t>(times);
  while (switches < enough) {
    Sleep(ns);
    const uint64_t before = std::exchange(switches, SwitchesByUsage());
    if (switches == before) ns = std::min(2 * ns, kMaxSleepNs);
  }
}

// Waits until the kernel has released this process's thread `tid`, including perf's records of its end. pthread_join
// returns earlier: the end of the thread's memory, which wakes it, comes first in a thread's exit.
inline void AwaitEnd(pid_t tid) {
  while (syscall(SYS_tgkill, getpid(), tid, 0) == 0) Sleep(100'000);
}

inline uint64_t NowNs(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace perfkit::testing
