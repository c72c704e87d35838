// How long a tick of the machine's counter is, to a few parts in a million.
#pragma once

#include <cstdint>

#include "perfkit/detail/user_page.h"

namespace perfkit::count {

struct TickRate {
  uint64_t ns_per_tick_q32 = 0;  // nanoseconds a tick, in 2^-32; 0: there is no usable tick counter
  uint64_t ticks_per_ms = 0;
};

// From `page`, where the kernel publishes its own conversion (cap_user_time); from the counter's architected frequency
// on arm64; else measured once a process against CLOCK_MONOTONIC_RAW, which takes 10 ms. Any thread.
TickRate TickRateOf(const UserPage& page);

}  // namespace perfkit::count
