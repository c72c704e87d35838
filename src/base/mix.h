// Spreads keys over a table, by one multiplication: Fibonacci hashing (Knuth 6.4).
#pragma once

#include <cstdint>

#include "src/base/in_handler.h"

namespace perfkit::base {

// 2^64 divided by the golden ratio, times the key. The high bits of the product are the well mixed ones: shift.
PERFKIT_IN_HANDLER constexpr uint64_t Mix(uint64_t key) { return key * 0x9e37'79b9'7f4a'7c15; }

}  // namespace perfkit::base
