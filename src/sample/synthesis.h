// The side band of what was there before a sampler started: records such as the kernel would have written.
//
// Read after the start, when the real side band is already being written: whatever changes meanwhile comes as a record
// of its own, later, and says what holds from then on. So nothing falls between the two; some of it is told twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "perfkit/sample.h"
#include "src/sample/plan.h"

namespace perfkit::sample {

// FORK and COMM of each thread, then MMAP2 of what is mapped, one after the other; all at `time_ns`. Of whole CPUs: of
// nobody. What cannot be read is not there.
std::vector<std::byte> SynthesizeState(const Plan& plan, uint64_t time_ns);

}  // namespace perfkit::sample
