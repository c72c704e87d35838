// The perf groups of a set, and their times.
//
// An event that a thread has once for each kind of core is split: its parts are in several groups, which are read one
// after the other. Times are settled so that its time on no counter never decreases from one read to the next.
//
// All functions of the data path are inline: src/sys/read.h says why.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "perfkit/counter.h"
#include "src/count/perf_group.h"

namespace perfkit::count {

class GroupReads {
 public:
  std::vector<PerfGroup>& all() { return groups_; }
  bool empty() const { return groups_.empty(); }

  // Say that event `i` is in a group, or in several.
  void AddEvent(size_t i) { grouped_ |= 1u << i; }
  void AddSplit(size_t i) { split_ |= 1u << i; }
  // Bit i: event i is in a group.
  uint32_t grouped() const { return grouped_; }

  // Called once, when all groups are open.
  void BeginTimes() noexcept;
  // Reads the events of the mask `wanted`.
  void Read(uint32_t wanted, Snapshot& now) noexcept {
    // Groups add to the values, because an event may be in several of them: so all begin at 0.
    for (uint32_t left = grouped_ & wanted; left != 0; left &= left - 1) {
      const int i = __builtin_ctz(left);
      now.values[i] = 0;
      now.times[i] = {0, 0};
    }
    for (PerfGroup& group : groups_) group.Read(wanted, now);
    if (split_ != 0) SettleTimes(now);
  }

 private:
  void SettleTimes(Snapshot& now) noexcept;

  std::vector<PerfGroup> groups_;
  uint32_t grouped_ = 0;
  uint32_t split_ = 0;                           // Bit i: event i is split.
  std::array<int64_t, kMaxEvents> missed_ns_{};  // For split events: time on no counter so far.
};

// Stores a later time enabled minus an earlier time running: at least the time that was missed while the groups were
// being opened, so that a later reading finds more only if there is more.
inline void GroupReads::BeginTimes() noexcept {
  if (split_ == 0) return;
  Snapshot early{}, late{};
  for (PerfGroup& group : groups_) group.Read(split_, early);
  for (PerfGroup& group : groups_) group.Read(split_, late);
  for (size_t i = 0; i < missed_ns_.size(); ++i) {
    missed_ns_[i] = static_cast<int64_t>(late.times[i].enabled_ns - early.times[i].running_ns);
  }
}

// The parts of an event are read one after the other: time enabled is that of the first, and time running, a sum,
// includes what the thread ran in between. So their difference, the time on no counter, may be too small by those few
// hundred nanoseconds, but never too large. It never decreases, so the largest seen value is the best. Otherwise a
// short count would look multiplexed, and be scaled, whenever two reads took differently long.
inline void GroupReads::SettleTimes(Snapshot& now) noexcept {
  for (uint32_t left = split_; left != 0; left &= left - 1) {
    const int i = __builtin_ctz(left);
    Snapshot::Times& times = now.times[i];
    missed_ns_[i] = std::max(missed_ns_[i], static_cast<int64_t>(times.enabled_ns - times.running_ns));
    times.enabled_ns = times.running_ns + static_cast<uint64_t>(missed_ns_[i]);
  }
}

}  // namespace perfkit::count
