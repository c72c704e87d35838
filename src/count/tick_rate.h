// The length of a tick of the machine's counter, to a few parts in a million.
#pragma once

#include <cstdint>

#include "perfkit/detail/user_page.h"

namespace perfkit::count {

struct TickRate {
  uint64_t ns_per_tick_q32 = 0;  // Nanoseconds per tick, in 2^-32; 0 means that there is no usable tick counter.
  uint64_t ticks_per_ms = 0;
};

// Returns the rate from `page`, if the kernel publishes its conversion there (cap_user_time); on arm64 from the
// counter's architected frequency; else measures it against CLOCK_MONOTONIC_RAW, once in a process, which takes 10 ms.
// Thread-safe.
TickRate TickRateOf(const UserPage& page);

}  // namespace perfkit::count
