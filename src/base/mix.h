// Spreads keys over a table, by one multiplication: Fibonacci hashing (Knuth 6.4).
#pragma once

#include <cstdint>

#include "src/base/in_handler.h"

namespace perfkit::base {

// Returns the key times 2^64 divided by the golden ratio. Use the high bits, which are the well mixed ones: shift.
PERFKIT_IN_HANDLER constexpr uint64_t Mix(uint64_t key) { return key * 0x9e37'79b9'7f4a'7c15; }

}  // namespace perfkit::base
