// Counts a thread's allocations by new, and their bytes, if one file of the program includes counted_new.h.
#pragma once

#include <cstdint>

#include "tests/support/work.h"

namespace perfkit::testing {

// A sanitizer matches its own operator new with its own free, so it is not replaced.
inline constexpr bool kCountsNew = !kSanitized;
// Allocations of this thread; only differences have a meaning.
inline thread_local uint64_t allocations_so_far = 0;
// Bytes that this thread has allocated, minus those that it has freed.
inline thread_local int64_t bytes_held = 0;
// The largest value of bytes_held since a test has set this.
inline thread_local int64_t max_bytes_held = 0;

}  // namespace perfkit::testing
