// The kernel's clocks in nanoseconds.
#pragma once

#include <time.h>

#include <cstdint>

#include "src/sys/kernel.h"

namespace perfkit::sys {

// Returns the time of `clock`; 0 if there is no such clock.
inline uint64_t ClockNs(clockid_t clock) {
  timespec now{};
  kernel().clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// Returns what to add to a time of CLOCK_MONOTONIC for the time of day.
inline uint64_t RealtimeOffsetNs() { return ClockNs(CLOCK_REALTIME) - ClockNs(CLOCK_MONOTONIC); }

}  // namespace perfkit::sys
