// A sorted list of ranges. A new range cuts those that it overlaps.
#include "src/proc/space.h"

#include <algorithm>

namespace perfkit::proc {
namespace {

// Returns the first range that ends after `address`.
template <class Ranges>
auto FirstEndingAfter(Ranges& ranges, uint64_t address) {
  return std::upper_bound(ranges.begin(), ranges.end(), address,
                          [](uint64_t at, const MappedRange& range) { return at < range.end; });
}

}  // namespace

void Space::Unmap(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  auto first = FirstEndingAfter(ranges_, begin);
  if (first == ranges_.end() || first->begin >= end) return;
  // The remains of the first and of the last range that is touched.
  MappedRange left = *first;
  left.end = begin;
  auto last = first;
  while (last != ranges_.end() && last->begin < end) ++last;
  MappedRange right = *std::prev(last);
  // If nothing is left on that side, the range comes out empty or reversed, and is not inserted.
  right.offset += end - right.begin;
  right.begin = end;
  first = ranges_.erase(first, last);
  if (right.begin < right.end) first = ranges_.insert(first, right);
  // A hole in a range makes two of it.
  if (left.begin < left.end && ranges_.size() < kMaxRanges) ranges_.insert(first, left);
}

void Space::Map(const MappedRange& range) {
  if (range.begin >= range.end) return;
  Unmap(range.begin, range.end);
  if (ranges_.size() < kMaxRanges) ranges_.insert(FirstEndingAfter(ranges_, range.begin), range);
}

const MappedRange* Space::Find(uint64_t address) const {
  const auto found = FirstEndingAfter(ranges_, address);
  return found != ranges_.end() && found->begin <= address ? &*found : nullptr;
}

}  // namespace perfkit::proc
