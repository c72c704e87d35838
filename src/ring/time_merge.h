// Reads many rings as one, in the order of time.
//
// Each ring is nearly in order by itself, so only the front records of all rings compete: a tournament of losers (Knuth
// 5.4.1) of which a new front replays one path: log2(rings) matches without a branch to guess.
//
//                 winner
//            loser of the final           a node keeps who lost there
//        loser        loser
//      ring 0 1     ring 2 3              the front record of each ring, still in the ring
//
// A key is one number, its time above its ring, so that a match is a minimum and a maximum. What is left for the
// time reaches some hours around an origin; records further away than that move the origin when it is their turn.
//
// A record may appear in its ring a little after a later one has appeared in another (the kernel takes its time first,
// and publishes then), so only what is older than a horizon is given out; the rest stays in the rings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "perfkit/ring_reader.h"

namespace perfkit::ring {

// The latest that a record has been seen to appear after its time is 1.3 us; a window of this keeps a wide margin.
constexpr uint64_t kMergeWindowNs = 50'000;

struct MergeStats {
  DrainStats rings;   // of all of them
  uint64_t late = 0;  // given out after one of a later time: the window was too short for these
  bool held = false;  // records beyond the horizon wait in the rings
};

// For one thread at a time. The rings must outlive it, stay where they are, and be drained by nothing else.
class TimeMerge {
 public:
  // Another ring; rings are numbered from 0. Not between Drains of a merge that is in use: it allocates.
  void Add(RingReader& ring);
  size_t size() const { return fronts_.size(); }

  // Calls visit(const RawRecord&, size_t ring) with all records whose time is at most `horizon_ns`, in order of time,
  // where time_of(const RawRecord&, size_t ring) gives an optional time; records without one follow the one before
  // them. UINT64_MAX as horizon gives out everything, `max_records` at most so many. The view dies when visit returns.
  // If visit throws, its record counts as given out, and the others are for the next Drain. Allocates nothing.
  template <class TimeOf, class Visitor>
  MergeStats Drain(uint64_t horizon_ns, TimeOf&& time_of, Visitor&& visit, uint64_t max_records = UINT64_MAX);

 private:
  // From high bits to low ones: nanoseconds since `origin_`, and the ring. What is too far from the origin, on either
  // side, has that side's last number, and is told apart when it wins.
  using Key = uint64_t;
  static constexpr unsigned kRingBits = 20;
  static constexpr uint64_t kBefore = 0, kAfter = (uint64_t{1} << (64 - kRingBits)) - 2;
  static constexpr Key kNothing = UINT64_MAX;  // a ring without records comes last of all

  // The first two records of a ring. The second is read while the first still waits, so that no match waits for memory.
  // They take turns in two places: what has just been written in parts is slow to copy as a whole.
  struct Front {
    RingReader* reader = nullptr;
    Key first = kNothing, second = kNothing;
    size_t place = 0;  // of the first
    RawRecord records[2];
    uint64_t times[2] = {};  // a record without one has that of the one before it

    RawRecord& Record(size_t number) { return records[place ^ number]; }
    uint64_t& Time(size_t number) { return times[place ^ number]; }
    // Gives back the room of what was given out.
    void GiveBack() { reader->GiveBack(first == kNothing ? 0 : Record(0).size); }
  };
  static constexpr uint64_t kGiveBackEvery = 64;
  static constexpr size_t kPrefetchBytes = 256;

  // Nothing, too.
  static bool IsFar(Key key) { return key - (Key{1} << kRingBits) >= (kAfter - 1) << kRingBits; }
  Key KeyOf(uint64_t time, size_t ring) const;
  template <class TimeOf>
  Key Advance(size_t ring, TimeOf& time_of);
  Key BuildTree();
  Key Replay(Key key, size_t ring);
  void End(MergeStats& stats);

  // Ends a drain whose visitor throws.
  struct Progress {
    TimeMerge* merge;  // null: has ended
    MergeStats& stats;
    Front* visited = nullptr;

    ~Progress() {
      if (merge == nullptr) return;
      if (visited != nullptr) visited->first = kNothing;
      merge->End(stats);
      merge->unfinished_ = stats;
    }
  };

  std::vector<Front> fronts_;
  std::vector<Key> losers_;      // [1, leaves_): of the matches; ring i plays first at (leaves_ + i) / 2
  std::vector<Key> winners_;     // [1, 2 * leaves_): of a round of all through the tree
  size_t leaves_ = 0;            // a power of two, at least 2
  uint64_t origin_ = 0;
  uint64_t last_time_ = 0;  // given out
  uint64_t advances_ = 0;
  MergeStats unfinished_;  // of a drain whose visitor threw: the next one's
};

inline TimeMerge::Key TimeMerge::KeyOf(uint64_t time, size_t ring) const {
  uint64_t since = time - origin_;
  if (since >= kAfter) [[unlikely]]
    since = time < origin_ ? kBefore : kAfter;
  return since << kRingBits | ring;
}

// The second record of a ring becomes its first, which is returned, and the one after it its second.
template <class TimeOf>
inline TimeMerge::Key TimeMerge::Advance(size_t ring, TimeOf& time_of) {
  Front& front = fronts_[ring];
  front.place ^= 1;
  front.first = front.second;
  if (++advances_ % kGiveBackEvery == 0) [[unlikely]]
    front.GiveBack();
  RawRecord& record = front.Record(1);
  uint64_t time = front.Time(0);
  front.second = kNothing;
  if (front.reader->Next(record)) [[likely]] {
    // So many rings at once are more than the hardware foresees. (Beyond the ring's end nothing happens.)
    __builtin_prefetch(record.data + kPrefetchBytes);
    time = time_of(record, ring).value_or(time);
    front.second = KeyOf(time, ring);
  }
  front.Time(1) = time;
  return front.first;
}

// From the ring's leaf to the root: who loses stays. A mask instead of a branch: who wins is anybody's guess.
inline TimeMerge::Key TimeMerge::Replay(Key key, size_t ring) {
  for (size_t match = (leaves_ + ring) / 2; match > 0; match /= 2) {
    Key& loser = losers_[match];
    const Key less = (key - loser) & (uint64_t{0} - static_cast<uint64_t>(loser < key));
    loser += less;
    key -= less;
  }
  return key;
}

template <class TimeOf, class Visitor>
MergeStats TimeMerge::Drain(uint64_t horizon_ns, TimeOf&& time_of, Visitor&& visit, uint64_t max_records) {
  MergeStats stats = std::exchange(unfinished_, {});
  if (fronts_.empty()) return stats;
  Progress progress{.merge = this, .stats = stats};
  for (size_t ring = 0; ring < fronts_.size(); ++ring) Advance(ring, time_of), Advance(ring, time_of);
  for (Key winner = BuildTree();;) {
    if (IsFar(winner)) [[unlikely]] {
      if (winner == kNothing) break;
      winner = BuildTree();
    }
    const size_t ring = winner & ((Key{1} << kRingBits) - 1);
    Front& front = fronts_[ring];
    const uint64_t time = front.Time(0);
    if (time > horizon_ns || max_records-- == 0) break;
    stats.late += time < last_time_ ? 1 : 0;
    last_time_ = std::max(last_time_, time);
    progress.visited = &front;
    visit(static_cast<const RawRecord&>(front.Record(0)), ring);
    winner = Replay(Advance(ring, time_of), ring);
  }
  progress.merge = nullptr;
  End(stats);
  return stats;
}

}  // namespace perfkit::ring
