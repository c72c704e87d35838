// Reads a sampler's rings: records of several rings merged by time up to a horizon, those of a single ring as they are,
// overwriting rings backwards, one after the other.
//
// No byte is read twice, and bytes that are no record are added to the accounting, even if a visitor throws.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "src/ring/time_merge.h"
#include "src/sample/accounting.h"
#include "src/sample/live_stack_reader.h"
#include "src/sample/sampler_rings.h"

namespace perfkit::sample {

// Not thread-safe.
class RingDrain {
 public:
  // The arguments must outlive the object.
  RingDrain(const Plan& plan, SamplerRings& rings, Accounting& accounting)
      : plan_(plan), rings_(rings), accounting_(accounting) {}

  // Merges the rings that exist now, and those of live stacks.
  void Index(LiveStackReader& live, const std::vector<Writer>& writers);
  // Called when the sampler starts at `now_ns`: no record is older than the first start, or by a clock that can be set
  // back, not much older.
  void Start(uint64_t now_ns) {
    const clockid_t clock = plan_.options().clock_id;
    const bool may_be_set = clock == CLOCK_REALTIME || clock == CLOCK_TAI;
    if (earliest_ns_ == 0) earliest_ns_ = now_ns - std::min(now_ns, may_be_set ? kDayNs : kSlackNs);
  }
  // Called when a drain begins at `now_ns`: records are not later than its last read.
  void Begin(uint64_t now_ns) { latest_ns_ = now_ns + kDrainNs; }

  // Calls `deliver(raw, slot)` for each record up to `horizon_ns`, and `deliver_stack(raw)` for live stacks, at most
  // `max_records` times. Returns false if there may be more.
  template <class Deliver, class DeliverStack>
  bool DrainUntil(uint64_t horizon_ns, size_t max_records, Deliver&& deliver, DeliverStack&& deliver_stack) {
    const bool streams = plan_.options().mode == RingMode::kStream;
    const bool one = streams && merge_.size() == 1 && rings_.active.rings.size() == 1;
    return (one ? DrainOne(max_records, deliver) : DrainMany(horizon_ns, max_records, deliver, deliver_stack)) <
           max_records;
  }
  // Calls `deliver(raw, slot)` for each record of the set, newest first.
  template <class Deliver>
  void DrainBackwards(RingSet& set, Deliver&& deliver);

  // Returns the record's time. One in the future, or of before the start, is from another sampler's clock: then
  // nullopt.
  std::optional<uint64_t> TimeOf(const RawRecord& raw) const {
    const std::optional<uint64_t> time = plan_.layout().TimeOf(raw);
    return time && *time >= earliest_ns_ && *time <= latest_ns_ ? time : std::nullopt;
  }

  // All records before this time have been read.
  uint64_t drained_ns() const { return drained_ns_; }
  void SetDrained(uint64_t time_ns) { drained_ns_ = time_ns; }

 private:
  // Exceeds the time from the beginning of a drain until its last read of a ring.
  static constexpr uint64_t kDrainNs = 1'000'000'000;
  // Exceeds what the kernel's reading of a clock differs from this process's.
  static constexpr uint64_t kSlackNs = 1'000'000;
  static constexpr uint64_t kDayNs = 86'400'000'000'000;

  // These return how many records were read.
  template <class Deliver>
  uint64_t DrainOne(size_t max_records, Deliver& deliver);
  template <class Deliver, class DeliverStack>
  uint64_t DrainMany(uint64_t horizon_ns, size_t max_records, Deliver& deliver, DeliverStack& deliver_stack);

  const Plan& plan_;
  SamplerRings& rings_;
  Accounting& accounting_;
  ring::TimeMerge merge_;
  uint64_t earliest_ns_ = 0;         // Minimum time of records.
  uint64_t latest_ns_ = UINT64_MAX;  // Maximum time of records in this drain.
  uint64_t drained_ns_ = 0;
};

// A single ring is in order. Uses the reader's own accounting, which has the dropped bytes even if the visitor throws.
template <class Deliver>
uint64_t RingDrain::DrainOne(size_t max_records, Deliver& deliver) {
  RingSlot& slot = *rings_.active.rings.front();
  RingReader& reader = slot.ring.reader();
  const absl::Cleanup account = [&, before = reader.stats().malformed_bytes] {
    accounting_.malformed_bytes += reader.stats().malformed_bytes - before;
  };
  return reader.Drain([&](const RawRecord& raw) { deliver(raw, slot); }, max_records).records;
}

template <class Deliver, class DeliverStack>
uint64_t RingDrain::DrainMany(uint64_t horizon_ns, size_t max_records, Deliver& deliver, DeliverStack& deliver_stack) {
  const size_t kernels = rings_.side.rings.size() + rings_.active.rings.size();  // Those of live stacks come after.
  const ring::MergeStats stats = merge_.Drain(
      horizon_ns, [&](const RawRecord& raw, size_t) { return TimeOf(raw); },
      [&](const RawRecord& raw, size_t ring) {
        ring < kernels ? deliver(raw, rings_.MergedSlot(ring)) : deliver_stack(raw);
      },
      max_records);
  accounting_.malformed_bytes += stats.rings.malformed_bytes;
  accounting_.late += stats.late;
  return stats.rings.records;
}

template <class Deliver>
void RingDrain::DrainBackwards(RingSet& set, Deliver&& deliver) {
  for (const std::unique_ptr<RingSlot>& slot : set.rings) {
    RingReader& reader = slot->ring.reader();
    const absl::Cleanup account = [&, before = reader.stats()] {
      const DrainStats& now = reader.stats();
      accounting_.malformed_bytes += now.malformed_bytes - before.malformed_bytes;
      const uint64_t overwritten = now.overwritten_bytes - before.overwritten_bytes;
      const uint64_t skipped = now.skipped_bytes - before.skipped_bytes;  // By a visitor that threw.
      accounting_.overwritten_bytes += overwritten + skipped;
      // The record that was read last is the oldest one.
      if (overwritten + skipped == 0) return;
      accounting_.overwritten_until_ns = std::max(accounting_.overwritten_until_ns, slot->last_time_ns);
    };
    reader.Drain([&](const RawRecord& raw) { deliver(raw, *slot); });
  }
}

// The side band comes first, so that records with the same time are delivered before samples. Overwriting rings are not
// merged.
inline void RingDrain::Index(LiveStackReader& live, const std::vector<Writer>& writers) {
  merge_ = ring::TimeMerge();
  for (const std::unique_ptr<RingSlot>& slot : rings_.side.rings) merge_.Add(slot->ring.reader());
  if (plan_.options().mode == RingMode::kStream) {
    for (const std::unique_ptr<RingSlot>& slot : rings_.active.rings) merge_.Add(slot->ring.reader());
  }
  live.Index(writers, merge_);
}

}  // namespace perfkit::sample
