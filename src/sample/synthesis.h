// The side band of the threads and mappings that exist when a sampler starts, as records in the kernel's layout.
//
// The state is read after the start, when the kernel already writes the side band. A change during the reading has a
// later record of its own, which then holds. So nothing is missed; some of it is reported twice.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "perfkit/sample.h"
#include "src/sample/plan.h"

namespace perfkit::sample {

// Returns the records, one after the other, all at `time_ns`: FORK and COMM for each thread, then MMAP2 for each
// executable mapping. Empty for whole CPUs. Omits what can't be read.
std::vector<std::byte> SynthesizeState(const Plan& plan, uint64_t time_ns);

// Synthesized records that are still to be delivered, each once. Not thread-safe.
class SynthesizedRecords {
 public:
  SynthesizedRecords() = default;
  explicit SynthesizedRecords(std::vector<std::byte> records) : records_(std::move(records)) {}

  // Returns the next record, nullopt if there is none. The view is valid until the next call.
  std::optional<RawRecord> Next();

 private:
  std::vector<std::byte> records_;
  size_t given_ = 0;  // Bytes that were delivered.
};

}  // namespace perfkit::sample
