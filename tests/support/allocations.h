// How often a thread has allocated with new, and what it holds: where one file of the program includes counted_new.h.
#pragma once

#include <cstdint>

#include "tests/support/work.h"

namespace perfkit::testing {

// A sanitizer checks its own operator new against its own free: it is left alone.
inline constexpr bool kCountsNew = !kSanitized;
// Of this thread; only differences mean something.
inline thread_local uint64_t allocations_so_far = 0;
// What this thread has allocated, without what it has freed.
inline thread_local int64_t bytes_held = 0;

}  // namespace perfkit::testing
