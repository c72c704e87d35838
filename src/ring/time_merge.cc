// The rare half of the merge: builds its tree, and ends a drain.
#include "src/ring/time_merge.h"

#include <bit>

namespace perfkit::ring {

void TimeMerge::Add(RingReader& ring) {
  fronts_.push_back({.reader = &ring, .records = {}});
  // A full tree: leaves without a ring hold kNothing, which loses each match.
  leaves_ = std::max<size_t>(2, std::bit_ceil(fronts_.size()));
  losers_.assign(leaves_, kNothing);
  winners_.assign(2 * leaves_, kNothing);
}

// Computes all keys around the earliest record, and plays all matches from the leaves to the root.
TimeMerge::Key TimeMerge::BuildTree() {
  uint64_t earliest = UINT64_MAX;
  for (Front& front : fronts_) earliest = front.first != kNothing ? std::min(earliest, front.Time(0)) : earliest;
  // Half of the range is for records before the earliest one, which may still appear.
  origin_ = earliest - std::min(earliest, kAfter / 2);
  for (size_t ring = 0; ring < fronts_.size(); ++ring) {
    Front& front = fronts_[ring];
    if (front.first != kNothing) front.first = KeyOf(front.Time(0), ring);
    if (front.second != kNothing) front.second = KeyOf(front.Time(1), ring);
    winners_[leaves_ + ring] = front.first;
  }
  for (size_t match = leaves_ - 1; match > 0; --match) {
    const auto [winner, loser] = std::minmax(winners_[2 * match], winners_[2 * match + 1]);
    winners_[match] = winner;
    losers_[match] = loser;
  }
  return winners_[1];
}

// Records that were not delivered go back to their rings, for the next drain.
void TimeMerge::End(MergeStats& stats) {
  for (Front& front : fronts_) {
    // The later one first: a ring takes back its last record only.
    if (front.second != kNothing) front.reader->Unread(front.Record(1));
    if (front.first != kNothing) front.reader->Unread(front.Record(0));
    stats.held |= front.first != kNothing;
    front.first = front.second = kNothing;
    front.Time(1) = front.Time(0);
    stats.rings += front.reader->Release();
  }
}

}  // namespace perfkit::ring
