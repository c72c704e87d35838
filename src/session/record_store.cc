// Keeps copies of records, and replays them sorted by time. The copies are in one buffer that grows, so records have
// offsets until then, not pointers. Records of the same time keep their order.
#include "src/session/record_store.h"

#include <algorithm>

namespace perfkit::session {

void RecordStore::Add(const SamplerRecord& record, const SampleLayout& layout) {
  kept_.push_back({record, layout.TimeOf(record).value_or(0), bytes_.size()});
  const Bytes whole = record.bytes();
  bytes_.insert(bytes_.end(), whole.data(), whole.data() + whole.size());
}

void RecordStore::Replay(absl::FunctionRef<void(const SamplerRecord& record)> visit) {
  std::stable_sort(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) { return a.time_ns < b.time_ns; });
  for (Kept& one : kept_) {
    one.record.data = bytes_.data() + one.at;
    visit(one.record);
  }
  kept_.clear();
  bytes_.clear();
}

}  // namespace perfkit::session
