// The cold half of the merge: its tree, and the end of a drain.
#include "src/ring/time_merge.h"

#include <bit>

namespace perfkit::ring {

void TimeMerge::Add(RingReader& ring) {
  fronts_.push_back({.reader = &ring, .record = {}});
  leaves_ = std::max<size_t>(2, std::bit_ceil(fronts_.size()));
  losers_.assign(leaves_, Player());
  winners_.assign(2 * leaves_, Player());
}

// Bottom up: the winner of each match plays on, the loser stays.
TimeMerge::Player TimeMerge::PlayAll() {
  for (size_t match = leaves_ - 1; match > 0; --match) {
    const Player left = winners_[2 * match], right = winners_[2 * match + 1];
    const bool left_wins = left.key <= right.key;
    winners_[match] = left_wins ? left : right;
    losers_[match] = left_wins ? right : left;
  }
  return winners_[1];
}

// The winner and every loser may have a front that was not given out: the rings keep it for the next drain.
void TimeMerge::End(Player winner, MergeStats& stats) {
  losers_[0] = winner;
  for (const Player& player : losers_) {
    if (player.key == kNothing) continue;
    Front& front = fronts_[player.ring];
    front.reader->PutBack(front.record);
    stats.held = true;
  }
  for (Front& front : fronts_) stats.rings += front.reader->Release();
}

}  // namespace perfkit::ring
