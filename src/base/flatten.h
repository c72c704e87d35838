// Splits overlapping ranges into pieces that do not overlap, so that one binary search finds the range at an address.
//
// f  [----------------)            f f g g h g f f
// g      [-------)         ─>      the range that begins last is on top
//   h          [-)
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "src/base/last_at.h"

namespace perfkit::base {

// Calls `emit(begin, end, entry)` for each piece in rising order. `sorted` holds entries with `begin` and `end`, sorted
// by begin; if two begin alike, the later one is on top. Keeps a stack of the entries that contain the current address:
// each entry is pushed once and popped once.
template <class Entry, class Emit>
void Flatten(const std::vector<Entry>& sorted, Emit&& emit) {
  std::vector<const Entry*> open;
  uint64_t at = 0;
  const auto emit_until = [&](uint64_t to) {
    while (!open.empty() && at < to) {
      const Entry& top = *open.back();
      const uint64_t end = std::min<uint64_t>(top.end, to);
      if (at < end) emit(at, end, top);
      at = std::max(at, end);
      if (top.end <= at) open.pop_back();
    }
  };
  for (const Entry& entry : sorted) {
    emit_until(entry.begin);
    at = entry.begin;
    open.push_back(&entry);
  }
  emit_until(std::numeric_limits<uint64_t>::max());
}

// Maps addresses to the numbers of the ranges that contain them. Immutable after Build, and thread-safe from then on.
class FlatRanges {
 public:
  struct Range {
    uint64_t begin = 0, end = 0;
    uint32_t id = 0;
  };
  static constexpr uint32_t kNone = ~0u;

  void Add(uint64_t begin, uint64_t end, uint32_t id) {
    if (begin < end) ranges_.push_back({begin, end, id});
  }

  // Which of several equal ranges is on top, by its number.
  enum class Ties : uint8_t { kGreatest, kSmallest };

  // Call once, after the last Add. If ranges begin alike, the shorter one is on top.
  void Build(Ties ties = Ties::kGreatest) {
    std::sort(ranges_.begin(), ranges_.end(), [ties](const Range& a, const Range& b) {
      if (a.begin != b.begin) return a.begin < b.begin;
      if (a.end != b.end) return a.end > b.end;
      return ties == Ties::kGreatest ? a.id < b.id : a.id > b.id;
    });
    std::vector<Range> pieces;
    Flatten(ranges_, [&](uint64_t begin, uint64_t end, const Range& range) {
      const bool goes_on = !pieces.empty() && pieces.back().end == begin && pieces.back().id == range.id;
      if (goes_on) {
        pieces.back().end = end;
      } else {
        pieces.push_back({begin, end, range.id});
      }
    });
    pieces.shrink_to_fit();
    ranges_ = std::move(pieces);
  }

  uint32_t Find(uint64_t address) const {
    const Range* const found =
        LastAt(ranges_.data(), ranges_.size(), address, [](const Range& range) { return range.begin; });
    return found != nullptr && address < found->end ? found->id : kNone;
  }

  size_t bytes() const { return ranges_.capacity() * sizeof(Range); }
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

}  // namespace perfkit::base
