// Tests, before anything relies on them, that inline reads agree with the kernel's own counters.
//
// The ring heads and user pages that inline reads use are documented, but not when the kernel updates them. So the test
// makes one page fault and one sleep, and compares the inline reads with getrusage.
#pragma once

#include <cstdint>

#include "src/count/source.h"

namespace perfkit::count {

// Returns the events (bit i: event i) whose inline number was wrong, which must be read by the kernel; 0 means that all
// passed. Requires the counted thread. Takes about 0.1 ms, and several times that if a path is wrong or signals disturb
// the test.
uint32_t FailedSelfTest(Source& source);

}  // namespace perfkit::count
