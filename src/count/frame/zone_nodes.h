// The zones of a tree: for each zone one piece of memory, which has no more than the tree's events need.
//
//   ZoneNode | values | Detail | values of the total, of the last frame | times, twice | histograms
//
// The hot path uses the first two. Zones never move. They are found by pointers, and by their index, in blocks of
// kZonesOfBlock: a block is taken with its first zone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "perfkit/frame.h"
#include "src/count/frame/counted_events.h"
#include "src/count/frame/zone_histogram.h"
#include "src/count/frame/zone_memory.h"

namespace perfkit::count {

// The part of a zone that the hot path uses. Its sums are those of the frame under way.
struct ZoneNode {
  explicit ZoneNode(const char* key) : key(key) {}

  // The values of the sums, by event.
  uint64_t* values() { return reinterpret_cast<uint64_t*>(this + 1); }
  const uint64_t* values() const { return reinterpret_cast<const uint64_t*>(this + 1); }

  const char* key;  // the address of the name by which it was entered last
  ZoneNode* last_child = nullptr;
  uint64_t calls = 0;
  uint64_t ticks = 0;
  uint32_t missing = 0;
  bool at_least = false;
  bool touched = false;  // in the frame under way
  uint16_t index = 0;
  ZoneNode* parent = nullptr;
  ZoneNode* first_child = nullptr;
  ZoneNode* next_sibling = nullptr;
};
static_assert(sizeof(ZoneNode) == 64);

// The rest of a zone.
struct ZoneDetail {
  const char* name = "";
  ZoneNode* next_touched = nullptr;
  uint64_t frames = 0;
  // Of all frames, without the values and times.
  uint64_t calls = 0, ticks = 0;
  uint32_t missing = 0;
  bool at_least = false;
  // Of the last frame that had it, likewise.
  uint32_t last_missing = ~0u;
  uint64_t last_number = 0, last_wall_ns = 0;
};

// Other threads may call those that are const for zones that they know of, while the owner adds zones.
class ZoneNodes {
 public:
  ZoneNodes(const CountedEvents& events, size_t max_zones);

  // Makes room for one more zone. Returns false if there are `max_zones`, or no memory is left.
  bool MakeRoom(ZoneMemory& memory);
  // Returns a new zone, with the next index; nullptr if there is no room.
  ZoneNode* Add(const char* key, ZoneMemory& memory);
  // Number of bytes of memory that the first zones take.
  size_t first_bytes() const { return kZonesOfBlock * bytes_ + kLine; }
  size_t size() const { return size_; }
  size_t max_zones() const { return max_zones_; }

  ZoneNode& operator[](size_t index) { return *At(index); }
  const ZoneNode& operator[](size_t index) const { return *At(index); }

  ZoneDetail& detail(ZoneNode& node) const { return *Part<ZoneDetail>(node, detail_); }
  uint64_t* total_values(ZoneNode& node) const { return Part<uint64_t>(node, total_values_); }
  uint64_t* last_values(ZoneNode& node) const { return Part<uint64_t>(node, last_values_); }
  // Of the frame under way, and of all frames. They exist only if the tree has multiplexable events.
  Snapshot::Times* times(ZoneNode& node) const { return Part<Snapshot::Times>(node, times_); }
  Snapshot::Times* total_times(ZoneNode& node) const { return Part<Snapshot::Times>(node, total_times_); }
  // Of the wall in ns, and of event i at 1 + i.
  ZoneHistogram* histograms(ZoneNode& node) const { return Part<ZoneHistogram>(node, histograms_); }
  const ZoneDetail& detail(size_t index) const { return detail(*At(index)); }
  const ZoneHistogram& histogram(size_t index, size_t which) const { return histograms(*At(index))[which]; }

  // Return all of a zone's sums, and its last frame.
  Sums Total(size_t index) const;
  FrameRecord Last(size_t index) const;
  // Return and replace the sums of the frame under way.
  Sums Load(ZoneNode& node) const;
  void Store(const Sums& sums, ZoneNode& node) const;

 private:
  static constexpr size_t kZonesOfBlock = 8;
  static constexpr size_t kLine = 64;  // of the CPU's caches

  ZoneNode* At(size_t index) const {
    return reinterpret_cast<ZoneNode*>(blocks_[index / kZonesOfBlock] + index % kZonesOfBlock * bytes_);
  }
  template <class T>
  static T* Part(ZoneNode& node, size_t offset) {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(&node) + offset);
  }
  // Returns the offset of `bytes` more, which every zone has from now on.
  size_t Extend(size_t bytes) { return std::exchange(bytes_, bytes_ + bytes); }

  size_t values_;  // Number of values of each zone.
  size_t timed_;   // Number of events that have times; 0 if no event is multiplexable.
  size_t histogram_count_;
  size_t max_zones_;
  size_t bytes_ = sizeof(ZoneNode);
  size_t detail_, total_values_, last_values_, times_, total_times_, histograms_;
  size_t size_ = 0;
  std::vector<std::byte*> blocks_;
};

}  // namespace perfkit::count
