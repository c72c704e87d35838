// The layout of zones in memory, and their copies for reports.
#include "src/count/frame/zone_nodes.h"

#include <algorithm>
#include <memory>
#include <new>

namespace perfkit::count {

ZoneNodes::ZoneNodes(const CountedEvents& events, size_t max_zones)
    : values_(events.value_count()),
      timed_(events.multiplexable() != 0 ? events.size() : 0),
      histogram_count_(1 + events.size()),
      max_zones_(max_zones) {
  bytes_ += values_ * sizeof(uint64_t);
  detail_ = Extend(sizeof(ZoneDetail));
  total_values_ = Extend(values_ * sizeof(uint64_t));
  last_values_ = Extend(values_ * sizeof(uint64_t));
  times_ = Extend(timed_ * sizeof(Snapshot::Times));
  total_times_ = Extend(timed_ * sizeof(Snapshot::Times));
  histograms_ = Extend(histogram_count_ * sizeof(ZoneHistogram));
  bytes_ = (bytes_ + kLine - 1) / kLine * kLine;
  blocks_.resize((max_zones_ + kZonesOfBlock - 1) / kZonesOfBlock);
}

bool ZoneNodes::MakeRoom(ZoneMemory& memory) {
  if (size_ == max_zones_) return false;
  std::byte*& block = blocks_[size_ / kZonesOfBlock];
  if (block == nullptr) block = memory.Take(std::min(kZonesOfBlock, max_zones_ - size_) * bytes_, kLine);
  return block != nullptr;
}

ZoneNode* ZoneNodes::Add(const char* key, ZoneMemory& memory) {
  if (!MakeRoom(memory)) return nullptr;
  // All other parts are zeros: the memory is new.
  ZoneNode* const node = new (At(size_)) ZoneNode(key);
  new (&detail(*node)) ZoneDetail;
  std::uninitialized_default_construct_n(histograms(*node), histogram_count_);
  node->index = static_cast<uint16_t>(size_++);
  return node;
}

Sums ZoneNodes::Total(size_t index) const {
  ZoneNode& node = *At(index);
  const ZoneDetail& from = detail(node);
  Sums total;
  total.calls = from.calls;
  total.ticks = from.ticks;
  total.missing = from.missing;
  total.at_least = from.at_least;
  std::copy_n(total_values(node), values_, total.values.begin());
  std::copy_n(total_times(node), timed_, total.times.begin());
  return total;
}

FrameRecord ZoneNodes::Last(size_t index) const {
  ZoneNode& node = *At(index);
  const ZoneDetail& from = detail(node);
  FrameRecord last;
  last.number = from.last_number;
  last.wall_ns = from.last_wall_ns;
  last.missing = from.last_missing;
  std::copy_n(last_values(node), values_, last.values.begin());
  return last;
}

Sums ZoneNodes::Load(ZoneNode& node) const {
  Sums sums;
  sums.calls = node.calls;
  sums.ticks = node.ticks;
  sums.missing = node.missing;
  sums.at_least = node.at_least;
  std::copy_n(node.values(), values_, sums.values.begin());
  std::copy_n(times(node), timed_, sums.times.begin());
  return sums;
}

void ZoneNodes::Store(const Sums& sums, ZoneNode& node) const {
  node.calls = sums.calls;
  node.ticks = sums.ticks;
  node.missing = sums.missing;
  node.at_least = sums.at_least;
  std::copy_n(sums.values.begin(), values_, node.values());
  std::copy_n(sums.times.begin(), timed_, times(node));
}

}  // namespace perfkit::count
