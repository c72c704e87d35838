// Records that are kept until they can be handed on in order of time.
//
// A flight recorder's samples come with a snapshot, newest first, long after the records of what was mapped and who ran
// when they were taken. What came later in the same place must not name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/sample.h"
#include "perfkit/sampler_record.h"

namespace perfkit::session {

// Not thread-safe.
class RecordStore {
 public:
  void Add(const SamplerRecord& record, const SampleLayout& layout);
  // Calls visit with all records in order of time, and forgets them. Views die when visit returns.
  void Replay(absl::FunctionRef<void(const SamplerRecord& record)> visit);

  size_t bytes() const { return bytes_.size(); }

 private:
  struct Kept {
    SamplerRecord record;
    uint64_t time_ns = 0;
    size_t at = 0;  // in bytes_
  };

  std::vector<std::byte> bytes_;
  std::vector<Kept> kept_;
};

}  // namespace perfkit::session
