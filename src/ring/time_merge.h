// Reads many rings as one, in the order of time.
//
// Each ring is nearly in order by itself, so only the front records of all rings compete: a tournament of losers (Knuth
// 5.4.1) of which a new front replays one path, log2(rings) comparisons without a branch to guess.
//
//                 winner
//            loser of the final           a node keeps who lost there: (time, ring)
//        loser        loser
//      ring 0 1     ring 2 3              the front record of each ring, still in the ring
//
// A record may appear in its ring a little after a later one has appeared in another (the kernel takes its time first,
// and publishes then), so only what is older than a horizon is given out; the rest stays in the rings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "perfkit/ring_reader.h"

namespace perfkit::ring {

// The latest that a record has been seen to appear after its time is 1.3 us; a window of this keeps a wide margin.
constexpr uint64_t kMergeWindowNs = 50'000;

struct MergeStats {
  DrainStats rings;   // of all of them
  uint64_t late = 0;  // given out after one of a later time: the window was too short for these
  bool held = false;  // records behind the horizon wait in the rings
};

// For one thread at a time. The rings must outlive it, stay where they are, and be drained by nothing else.
class TimeMerge {
 public:
  // Another ring; rings are numbered from 0. Not between Drains of a merge that is in use: it allocates.
  void Add(RingReader& ring);
  size_t size() const { return fronts_.size(); }

  // Calls visit(const RawRecord&, size_t ring) with all records whose time is at most `horizon_ns`, in order of time,
  // where time_of(const RawRecord&, size_t ring) gives an optional time; records without one follow the one before
  // them. UINT64_MAX as horizon gives out everything. The view dies when visit returns. Allocates nothing.
  template <class TimeOf, class Visitor>
  MergeStats Drain(uint64_t horizon_ns, TimeOf&& time_of, Visitor&& visit);

 private:
  // By time; a ring without records comes last of all.
  struct Player {
    uint64_t key = kNothing;
    uint64_t ring = 0;
  };
  struct Front {
    RingReader* reader = nullptr;
    RawRecord record;
    uint64_t key = 0;    // the time of `record`, or of one before it
    uint64_t given = 0;  // records, to give room back now and then
  };
  static constexpr uint64_t kNothing = UINT64_MAX;
  static constexpr uint64_t kLatest = kNothing - 1;
  static constexpr uint64_t kGiveBackEvery = 64;
  static constexpr size_t kPrefetchBytes = 256;

  template <class TimeOf>
  Player Advance(size_t ring, TimeOf& time_of);
  Player PlayAll();
  Player Replay(Player player);
  void End(Player winner, MergeStats& stats);

  std::vector<Front> fronts_;
  std::vector<Player> losers_;   // [1, leaves_): of the matches; ring i plays first at (leaves_ + i) / 2
  std::vector<Player> winners_;  // [1, 2 * leaves_): of the first round through the tree
  size_t leaves_ = 0;            // a power of two, at least 2
  uint64_t last_key_ = 0;        // given out
};

// The next front of a ring, as a player.
template <class TimeOf>
inline TimeMerge::Player TimeMerge::Advance(size_t ring, TimeOf& time_of) {
  Front& front = fronts_[ring];
  if (++front.given % kGiveBackEvery == 0) front.reader->GiveBack();
  if (!front.reader->Next(front.record)) return {kNothing, ring};
  // So many rings at once are more than the hardware foresees. (Beyond the ring's end nothing happens.)
  __builtin_prefetch(front.record.data + kPrefetchBytes);
  const std::optional<uint64_t> time = time_of(front.record, ring);
  if (time) front.key = std::min(*time, kLatest);
  return {front.key, ring};
}

// From the ring's leaf to the root: who loses stays. Masks instead of branches: who wins is anybody's guess.
inline TimeMerge::Player TimeMerge::Replay(Player player) {
  for (size_t match = (leaves_ + player.ring) / 2; match > 0; match /= 2) {
    Player& loser = losers_[match];
    const uint64_t swap = uint64_t{0} - static_cast<uint64_t>(loser.key < player.key);
    const uint64_t key = (loser.key ^ player.key) & swap, ring = (loser.ring ^ player.ring) & swap;
    loser = {loser.key ^ key, loser.ring ^ ring};
    player = {player.key ^ key, player.ring ^ ring};
  }
  return player;
}

template <class TimeOf, class Visitor>
MergeStats TimeMerge::Drain(uint64_t horizon_ns, TimeOf&& time_of, Visitor&& visit) {
  MergeStats stats;
  if (fronts_.empty()) return stats;
  for (size_t i = 0; i < fronts_.size(); ++i) winners_[leaves_ + i] = Advance(i, time_of);
  Player winner = PlayAll();
  const uint64_t last = std::min(horizon_ns, kLatest);
  while (winner.key <= last) {
    stats.late += winner.key < last_key_ ? 1 : 0;
    last_key_ = std::max(last_key_, winner.key);
    visit(static_cast<const RawRecord&>(fronts_[winner.ring].record), static_cast<size_t>(winner.ring));
    winner = Replay(Advance(winner.ring, time_of));
  }
  End(winner, stats);
  return stats;
}

}  // namespace perfkit::ring
