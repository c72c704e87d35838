// THE table of the sums in an event's accounting, for code that adds or subtracts all of them.
#pragma once

#include <cstdint>

#include "perfkit/sampler_stats.h"

namespace perfkit::profile {

// Pointers to members: adding and subtracting are one loop each, and neither can forget a field.
inline constexpr uint64_t EventAccounting::*kEventSums[] = {
    &EventAccounting::counted,     &EventAccounting::delivered, &EventAccounting::duplicates,
    &EventAccounting::lost,        &EventAccounting::paused,    &EventAccounting::malformed,
    &EventAccounting::foreign,     &EventAccounting::throttled, &EventAccounting::represented,
    &EventAccounting::unsampled_ns};
inline constexpr uint64_t StackAccounting::*kStackSums[] = {
    &StackAccounting::delivered,  &StackAccounting::duplicates, &StackAccounting::stale,
    &StackAccounting::walk_limit, &StackAccounting::no_ring,    &StackAccounting::ring_full,
    &StackAccounting::paused,     &StackAccounting::given_up,   &StackAccounting::coalesced};

// A field that is new has to be added above, and its bytes here. A new bool may be in bytes that were padding, and has
// to be thought of in Add.
static_assert(sizeof(void*) != 8 || (sizeof(StackAccounting) == 72 && sizeof(EventAccounting) == 160));

inline void Add(EventAccounting& to, const EventAccounting& from) {
  for (const auto sum : kEventSums) to.*sum += from.*sum;
  for (const auto sum : kStackSums) to.stacks.*sum += from.stacks.*sum;
  to.counted_is_lower_bound = to.counted_is_lower_bound || from.counted_is_lower_bound;
}

}  // namespace perfkit::profile
