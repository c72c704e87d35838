// Proves, before anyone relies on them, that inline reads tell what the kernel's own counters tell.
//
// The ring heads and user pages that inline reads use are documented, but when the kernel updates them is not.
// So one page fault and one sleep are made on purpose, and what the inline reads saw is held against getrusage.
#pragma once

#include <cstdint>

#include "src/count/source.h"

namespace perfkit::count {

// The events (bit i: event i) whose inline number was wrong: they have to be read by the kernel. 0: all proven.
// On the counted thread; takes about 0.1 ms, and some times that where a path is wrong or signals disturb the test.
uint32_t FailedSelfTest(Source& source);

}  // namespace perfkit::count
