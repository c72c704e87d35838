// Work of known shares: each thread measures by its own clocks what it really did, however the machine schedules it.
#pragma once

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "perfkit/profile.h"
#include "src/sys/clock.h"

namespace perfkit::session {

// Different factors, so that these are different functions for every linker.
template <uint64_t kFactor>
[[gnu::always_inline]] inline void Multiply(uint64_t rounds) {
  uint64_t x = 1;
  for (uint64_t i = 0; i < rounds; ++i) {
    x = x * kFactor + 1;
    asm volatile("" : "+r"(x));
  }
}
[[gnu::noinline]] inline void SeventyPercent(uint64_t rounds) { Multiply<70'001>(rounds); }
[[gnu::noinline]] inline void TwentyPercent(uint64_t rounds) { Multiply<20'001>(rounds); }
[[gnu::noinline]] inline void TenPercent(uint64_t rounds) { Multiply<10'001>(rounds); }

// A part of the work: where it is done, and about how much of it there.
struct WorkPart {
  void (*function)(uint64_t rounds);
  std::string_view name;
  uint64_t percent;
};
inline constexpr std::array<WorkPart, 3> kParts = {
    {{SeventyPercent, "SeventyPercent", 70}, {TwentyPercent, "TwentyPercent", 20}, {TenPercent, "TenPercent", 10}}};
using PartTimes = std::array<uint64_t, kParts.size()>;  // nanoseconds

// What a thread did, by its own clocks.
struct WorkDone {
  pid_t tid = 0;
  PartTimes part_ns{};     // CPU time in each part
  uint64_t cpu_ns = 0;     // CPU time of the whole thread so far
  uint64_t wall_ns = 0;    // from its begin to its end
  uint64_t asleep_ns = 0;  // of that, in SleepFor and off the CPU
  // CPU time in which the work stood still: the CPU clock went on, and a hypervisor or an interrupt had the CPU. No
  // sampler can take samples then.
  uint64_t stalled_ns = 0;
};

// Interrupted by signals of other profilers.
[[gnu::noinline]] inline void SleepFor(uint64_t ns) {
  timespec left{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

// A thread's work, and how long it took.
class Worker {
 public:
  explicit Worker(uint32_t seed) : random_(seed) { done_.tid = static_cast<pid_t>(syscall(SYS_gettid)); }

  // Each part once, for a random time, so that no clock that samples it can keep step with it.
  void Turn() {
    uint64_t begin_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
    const uint64_t reading_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
    begin_ns += reading_ns;
    for (size_t i = 0; i < kParts.size(); ++i) {
      const uint64_t rounds = kParts[i].percent * (1 + random_() % (2 * kRoundsAPercent));
      kParts[i].function(rounds);
      const uint64_t end_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
      const uint64_t part_ns = end_ns - begin_ns - std::min(end_ns - begin_ns, reading_ns);
      done_.part_ns[i] += part_ns;
      runs_.push_back({static_cast<double>(rounds), static_cast<double>(part_ns)});
      begin_ns = end_ns;
    }
  }

  // Sleeps for 30 % of the time from the last sleep to the end of this one, if it is about time.
  void Sleep() {
    const uint64_t tired_ns = sys::ClockNs(CLOCK_MONOTONIC), cpu_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
    if (tired_ns - awake_ns_ < 10'000'000) return;
    SleepFor((tired_ns - awake_ns_) * 3 / 7);
    awake_ns_ = sys::ClockNs(CLOCK_MONOTONIC);
    const uint64_t busy_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
    done_.asleep_ns += awake_ns_ - tired_ns - std::min(awake_ns_ - tired_ns, busy_ns);
  }

  WorkDone Finish() {
    done_.stalled_ns = StalledNs();
    done_.wall_ns = sys::ClockNs(CLOCK_MONOTONIC) - begin_ns_;
    done_.cpu_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
    return done_;
  }

 private:
  static constexpr uint64_t kRoundsAPercent = 20'000;  // some ten microseconds

  struct Run {
    double rounds = 0, ns = 0;
  };

  // The time beyond four times that of the fastest rounds: caches, frequencies and neighbours on the core cost less.
  uint64_t StalledNs() const {
    double best = 1e9, stalled_ns = 0;
    for (const Run& run : runs_) best = std::min(best, run.ns / run.rounds);
    for (const Run& run : runs_) stalled_ns += std::max(run.ns - 4 * best * run.rounds, 0.0);
    return static_cast<uint64_t>(stalled_ns);
  }

  std::mt19937 random_;
  const uint64_t begin_ns_ = sys::ClockNs(CLOCK_MONOTONIC);
  uint64_t awake_ns_ = begin_ns_;
  std::vector<Run> runs_;
  WorkDone done_;
};

// Works until `cpu_ns` of the thread's CPU time are over; with `sleeps` it also sleeps for 30 % of the elapsed time.
inline WorkDone DoWork(uint64_t cpu_ns, bool sleeps, uint32_t seed) {
  Worker worker(seed);
  while (sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) < cpu_ns) {
    worker.Turn();
    if (sleeps) worker.Sleep();
  }
  return worker.Finish();
}

// Runs `threads` at once. With `one_sleeps`, the last one sleeps.
inline std::vector<WorkDone> DoWorkInThreads(size_t threads, uint64_t cpu_ns, bool one_sleeps) {
  std::vector<WorkDone> done(threads);
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; ++i) {
    running.emplace_back(
        [&, i] { done[i] = DoWork(cpu_ns, one_sleeps && i + 1 == threads, static_cast<uint32_t>(i + 1)); });
  }
  for (std::thread& thread : running) thread.join();
  return done;
}

}  // namespace perfkit::session
