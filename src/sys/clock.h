// The kernel's clocks in nanoseconds.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <string_view>

#include "src/sys/kernel.h"

namespace perfkit::sys {

// What a time namespace adds to the clocks of its processes (man 7 time_namespaces). Perf's records have the times of
// the host, without it.
struct ClockOffsets {
  uint64_t monotonic_ns = 0, boottime_ns = 0;  // Modulo 2^64: most are negative or positive by hours.
};

// Returns the offsets in a text of /proc/PID/timens_offsets; 0 for clocks that it does not name.
ClockOffsets ParseClockOffsets(std::string_view text);

// The offsets of this process, read at the first ClockNs. One of the mutable globals of this library (docs/design.md).
struct OwnClockOffsets {
  std::atomic<bool> known{false};
  std::atomic<uint64_t> monotonic_ns{0}, boottime_ns{0};

  // A process that cannot read its own has none, as far as this can tell. Thread-safe.
  void Read();
};
extern constinit OwnClockOffsets own_clock_offsets;

// Returns what to subtract from a time of `clock`, as this process sees it, for that of the host.
inline uint64_t ClockOffsetNs(clockid_t clock) {
  const bool is_monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW;
  if (!is_monotonic && clock != CLOCK_BOOTTIME) return 0;
  OwnClockOffsets& own = own_clock_offsets;
  if (!own.known.load(std::memory_order_acquire)) own.Read();  // Pairs with the release in Read.
  return (is_monotonic ? own.monotonic_ns : own.boottime_ns).load(std::memory_order_relaxed);  // Ordered by `known`.
}

// Returns the time of `clock` as this process sees it; 0 if there is no such clock.
inline uint64_t OwnClockNs(clockid_t clock) {
  timespec now{};
  kernel().clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Returns the clock of a thread's CPU time: MAKE_THREAD_CPUCLOCK(tid, CPUCLOCK_SCHED) in
// include/linux/posix-timers_types.h. Once the thread has ended, its time is 0.
constexpr clockid_t ThreadCpuClock(pid_t tid) { return static_cast<clockid_t>(~static_cast<uint32_t>(tid) << 3 | 6); }

// Returns the time of `clock` as perf's records have it: that of the host.
inline uint64_t ClockNs(clockid_t clock) { return OwnClockNs(clock) - ClockOffsetNs(clock); }

// Returns what to add to a time of CLOCK_MONOTONIC, as records have it, for the time of day.
inline uint64_t RealtimeOffsetNs() { return ClockNs(CLOCK_REALTIME) - ClockNs(CLOCK_MONOTONIC); }

}  // namespace perfkit::sys
