// Keeps records until they can be replayed in order of time.
//
// A flight recorder reads its samples with a snapshot, newest first, and long after the side-band records of that time.
// Mappings and threads that came later must not name them.
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
  // Calls visit with all records in order of time, and forgets them. Views are valid until visit returns.
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
