// Merges the records of several rings in the order of time, without copying them.
//
// Each ring is nearly in order by itself, so it is enough to compare the front records of all rings. A tree of losers
// (Knuth, The Art of Computer Programming, 5.4.1) holds them: each inner node keeps the loser of its match. When a ring
// gets a new front, one path is replayed: log2(rings) matches, without a branch that could be mispredicted.
//
//               winner
//          loser of the final           an inner node keeps the loser of its match
//      loser        loser
//    ring 0 1     ring 2 3              a leaf is the front record of a ring, which stays in the ring
//
// A key is one number, the time in its high bits and the ring in its low ones, so a match is a minimum and a maximum.
// The bits for the time cover some hours around an origin. When a record beyond that range wins, the origin moves, and
// the tree is built anew.
//
// A record may appear in its ring shortly after a later one has appeared in another ring, because the kernel takes the
// time first and publishes afterwards. So only records up to a horizon are delivered; the others stay in the rings.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "perfkit/ring_reader.h"

namespace perfkit::ring {

// How far the horizon lies in the past. The longest delay that was measured between a record's time and its appearance
// is 1.3 us.
constexpr uint64_t kMergeWindowNs = 50'000;

struct MergeStats {
  DrainStats rings;   // The sum over all rings.
  uint64_t late = 0;  // Records delivered after a record of a later time, because the window was too short.
  bool held = false;  // Records beyond the horizon stayed in the rings.
};

// The merge of a set of rings. Not thread-safe. The rings must outlive it, stay where they are in memory, and be read
// by nothing else.
class TimeMerge {
 public:
  // Adds a ring; rings are numbered from 0. Requires that no drain is in progress. Allocates.
  void Add(RingReader& ring);
  size_t size() const { return fronts_.size(); }

  // Calls visit(const RawRecord&, size_t ring) for all records whose time is at most `horizon_ns`, in order of time,
  // but for at most `max_records`. time_of(const RawRecord&, size_t ring) returns an optional time; a record without
  // one has the time of the record before it. A record is valid until visit returns. If visit throws, its record counts
  // as delivered, and the next Drain delivers the others. UINT64_MAX as horizon delivers all records. Does not
  // allocate.
  template <class TimeOf, class Visitor>
  MergeStats Drain(uint64_t horizon_ns, TimeOf&& time_of, Visitor&& visit, uint64_t max_records = UINT64_MAX);

 private:
  // From high bits to low ones: nanoseconds since `origin_`, and the ring. A time out of range has the first or last
  // number; when such a key wins, all keys are computed anew.
  using Key = uint64_t;
  static constexpr unsigned kRingBits = 20;
  static constexpr uint64_t kBefore = 0, kAfter = (uint64_t{1} << (64 - kRingBits)) - 2;
  static constexpr Key kNothing = UINT64_MAX;  // A ring without records: larger than all other keys.

  // The first two records of a ring. The second is read while the first still waits, so that a match does not wait for
  // memory. They alternate between two slots instead of being copied: copying a struct right after its members were
  // written is slow (store forwarding fails).
  struct Front {
    RingReader* reader = nullptr;
    Key first = kNothing, second = kNothing;
    size_t place = 0;  // The slot of the first record.
    RawRecord records[2];
    uint64_t times[2] = {};  // A record without a time has the time of the one before it.

    RawRecord& Record(size_t number) { return records[place ^ number]; }
    uint64_t& Time(size_t number) { return times[place ^ number]; }
    // Returns the room of the delivered records to the kernel.
    void ReleaseRead() { reader->ReleaseRead(first == kNothing ? 0 : Record(0).size); }
  };
  static constexpr uint64_t kReleaseEvery = 64;
  static constexpr size_t kPrefetchBytes = 256;

  // Returns true if the key is out of range, or kNothing.
  static bool IsFar(Key key) { return key - (Key{1} << kRingBits) >= (kAfter - 1) << kRingBits; }
  // Returns the key of a record of `ring` at `time`.
  Key KeyOf(uint64_t time, size_t ring) const;
  // Removes the first record of a ring: the second becomes the first, whose key is returned, and the next one is read.
  template <class TimeOf>
  Key Advance(size_t ring, TimeOf& time_of);
  // Builds the tree around a new origin. Returns the winner.
  Key BuildTree();
  // Replays the path of a ring whose new front has `key`. Returns the winner.
  Key Replay(Key key, size_t ring);
  // Returns the records that were not delivered to their rings, and ends the batches of all rings.
  void End(MergeStats& stats);

  // Ends the drain if the visitor throws.
  struct Progress {
    TimeMerge* merge;  // Null once the drain has ended.
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
  std::vector<Key> losers_;  // [1, leaves_): the losers of the matches; the first match of ring i is (leaves_ + i) / 2.
  std::vector<Key> winners_;  // [1, 2 * leaves_): used by BuildTree.
  size_t leaves_ = 0;         // A power of two, at least 2.
  uint64_t origin_ = 0;       // The time whose key is 0, in ns.
  uint64_t last_time_ = 0;    // The latest time of a delivered record, in ns.
  uint64_t advances_ = 0;     // Calls of Advance.
  MergeStats unfinished_;     // The result of a drain whose visitor threw, for the next one.
};

inline TimeMerge::Key TimeMerge::KeyOf(uint64_t time, size_t ring) const {
  uint64_t since = time - origin_;
  if (since >= kAfter) [[unlikely]]
    since = time < origin_ ? kBefore : kAfter;
  return since << kRingBits | ring;
}

template <class TimeOf>
inline TimeMerge::Key TimeMerge::Advance(size_t ring, TimeOf& time_of) {
  Front& front = fronts_[ring];
  front.place ^= 1;
  front.first = front.second;
  if (++advances_ % kReleaseEvery == 0) [[unlikely]]
    front.ReleaseRead();
  RawRecord& record = front.Record(1);
  uint64_t time = front.Time(0);
  front.second = kNothing;
  if (front.reader->Next(record)) [[likely]] {
    // Records of more rings than the hardware's prefetcher can follow. A prefetch beyond the ring has no effect.
    __builtin_prefetch(record.data + kPrefetchBytes);
    time = time_of(record, ring).value_or(time);
    front.second = KeyOf(time, ring);
  }
  front.Time(1) = time;
  return front.first;
}

// From the ring's leaf to the root: the loser of each match stays. The mask avoids a branch that can't be predicted.
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
