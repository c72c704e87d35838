// Sums of differences between snapshots: what each event counted in some intervals, and whether that is known.
//
// A snapshot has room for kMaxEvents values, and those of unused events are always 0. So whole blocks of four are
// added, without a test for each value (ForEachValue). Times (Snapshot::times) are added only for multiplexable events.
// An event that could not be opened is never counted: it is in never(), and in none of the masks of missing events
// here.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "perfkit/frame.h"

namespace perfkit::count {

// Sums over intervals. `times` is used only for multiplexable events. `at_least`: the sums lack a visit that ended on
// another thread.
struct Sums {
  uint64_t calls = 0;
  uint64_t ticks = 0;
  std::array<uint64_t, kMaxEvents> values{};
  std::array<Snapshot::Times, kMaxEvents> times{};
  uint32_t missing = 0;
  bool at_least = false;

  void Merge(const Sums& other);
  // Keeps `calls`, which has no calls of children, and `at_least`: what a child lacks is in its parent.
  void Subtract(const Sums& other);
};

// Not thread-safe. Nothing allocates.
class CountedEvents {
 public:
  // Masks: bit i of `multiplexable` means that event i has times of its own. Bit i of `never` means that it is never
  // counted, so that its value in a snapshot is meaningless.
  CountedEvents(size_t events, uint32_t multiplexable, uint32_t never)
      : events_(std::min(events, kMaxEvents)),
        value_count_((events_ + 3) / 4 * 4),
        multiplexable_(multiplexable),
        never_(never) {}

  // Bit i: in later snapshots event i is counted from records, which may have gaps (CounterReader::gapped). After its
  // first gap it is missing in every snapshot, but not between two with the same number of gaps.
  void SetGapped(uint32_t gapped) { gapped_ = gapped; }
  uint32_t gapped() const { return gapped_; }

  size_t size() const { return events_; }
  // Number of values in whole blocks of four that cover all events.
  size_t value_count() const { return value_count_; }
  // Calls `visit` with the index of each of them.
  template <class Visit>
  void ForEachValue(Visit visit) const {
    for (size_t i = 0, end = value_count_; i < end; i += 4) {
      visit(i);
      visit(i + 1);
      visit(i + 2);
      visit(i + 3);
    }
  }
  uint32_t multiplexable() const { return multiplexable_; }
  uint32_t never() const { return never_; }

  // Adds an interval to `sums`.
  void Add(Sums& sums, const Snapshot& begin, const Snapshot& end) const {
    sums.ticks += end.ticks - begin.ticks;
    AddValues(sums.values.data(), begin, end);
    if (HasRest(begin, end)) AddRest(sums.missing, sums.times.data(), begin, end);
  }
  // The parts of Add. `values` has whole blocks.
  void AddValues(uint64_t* values, const Snapshot& begin, const Snapshot& end) const {
    ForEachValue([&](size_t i) { values[i] += end.values[i] - begin.values[i]; });
  }
  // Returns true if there is more to add than ticks and values: times, or events without a number.
  bool HasRest(const Snapshot& begin, const Snapshot& end) const {
    return (multiplexable_ | ((begin.missing | end.missing) & ~never_)) != 0;
  }
  void AddRest(uint32_t& missing, Snapshot::Times* times, const Snapshot& begin, const Snapshot& end) const;
  // Raises each number in `sums` to at least the one in `other`, except `calls`.
  void Raise(Sums& sums, const Sums& other) const;
  void Copy(const Snapshot& from, Snapshot& to) const;
  // Bit i: event i has no number between two snapshots, although it is counted.
  uint32_t MissingBetween(const Snapshot& begin, const Snapshot& end) const {
    return detail::MissingBetween(begin.missing, end.missing, gapped_) & ~never_;
  }
  // Bit i: event i was enabled, but never on the PMU, so that it has no count (as MakeCount says).
  uint32_t NeverOnPmu(const Sums& sums) const {
    uint32_t found = 0;
    for (uint32_t left = multiplexable_; left != 0; left &= left - 1) {
      const size_t i = static_cast<size_t>(__builtin_ctz(left));
      if (sums.times[i].enabled_ns > 0 && sums.times[i].running_ns == 0) found |= 1u << i;
    }
    return found;
  }
  // Bit i: event i was off its counter for a part of the interval, so that its value is too low.
  uint32_t MultiplexedBetween(const Snapshot& begin, const Snapshot& end) const {
    uint32_t found = 0;
    for (uint32_t left = multiplexable_; left != 0; left &= left - 1) {
      const size_t i = static_cast<size_t>(__builtin_ctz(left));
      const uint64_t enabled_ns = end.times[i].enabled_ns - begin.times[i].enabled_ns;
      if (enabled_ns != end.times[i].running_ns - begin.times[i].running_ns) found |= 1u << i;
    }
    return found;
  }

 private:
  size_t events_;
  size_t value_count_;
  uint32_t multiplexable_;
  uint32_t never_;
  uint32_t gapped_ = 0;
};

}  // namespace perfkit::count
