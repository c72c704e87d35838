// Settles losses at the edges of pauses, of drains, and of the life of events. The kernel's count of losses only grows.
// To settle is to read it and to add what is new to one of two sums. Which one is decided by two facts about the time
// since it was settled last: whether there was a pause, and whether a ring was ever nearly full.
//
//                  no pause      pause
//   never full     no loss       all of it is `paused`
//   nearly full    `lost`        not known: it counts as `lost`, and `paused` is a lower bound
//
// LOST records are judged by the same table, each by its own interval. They are read later than they are written, when
// losses have already been settled, so PauseHistory keeps the times at which pauses ended.
#include "src/sample/loss_accounting.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "src/sys/clock.h"

namespace perfkit::sample {

// Settles earlier losses first, but only if there can be any: that costs more than the pause.
void LossAccounting::BeginPause() {
  full_since_ = full_since_ || IsNearlyFull();
  full_at_pause_ = full_since_;
  if (full_since_ && !paused_since_) Settle(&EventAccounting::lost);
  paused_ = paused_since_ = true;
}

// If a ring is full, the next loss may follow at once, so the losses of the pause are settled before.
void LossAccounting::EndPause() {
  const bool full = IsNearlyFull();
  pauses_.Add({.end_ns = sys::ClockNs(plan_.options().clock_id), .was_full = full || full_at_pause_});
  if (full && !full_since_) Settle(&EventAccounting::paused);
  paused_ = false;
}

// Before a drain the rings are as full as they have been since the last one. While paused, they are as full as
// BeginPause found them.
bool LossAccounting::SettleBeforeDrain() {
  if (paused_) return false;
  const bool full = IsNearlyFull();
  full_since_ = full_since_ || full;
  if (paused_since_) Settle(KindNow());
  return full;
}

void LossAccounting::SettleAtEnd() {
  if (!paused_) {
    SettleBeforeDrain();
    Settle(&EventAccounting::lost);
  } else {
    Settle(KindNow());
    paused_since_ = true;  // The pause continues.
  }
}

LossAccounting::Kind LossAccounting::KindNow() {
  if (!paused_since_) return &EventAccounting::lost;
  accounting_.paused_is_lower_bound |= full_since_;
  return full_since_ ? &EventAccounting::lost : &EventAccounting::paused;
}

void LossAccounting::Settle(Kind into) {
  if (plan_.counts_lost()) {
    unsettled_ = false;
    rings_.ForEachEvent([&](RingEvent& ring_event) { unsettled_ |= !SettleEvent(ring_event, into); });
  }
  full_since_ = false;
  paused_since_ = false;
}

// On kernels that do not count losses by event, LOST records do (Add).
bool LossAccounting::SettleEvent(RingEvent& ring_event, Kind into) {
  const std::optional<EventCount> now = ring_event.Read(plan_.layout());
  if (!now) return false;
  // A read may have failed before: then this difference has the losses of that time, too.
  const uint64_t lost = now->lost - std::exchange(ring_event.lost_settled, now->lost);
  if (ring_event.event == RingEvent::kTracking) {
    // The rings of the side band are never paused, so all that it has lost is real.
    const bool hidden = ring_event.pausable && into == &EventAccounting::paused;
    accounting_.side_band_lost += hidden ? 0 : lost;
    return true;
  }
  const Writer* const writer = writers_.Find(ring_event.id);
  EventAccounting& event = accounting_.event(ring_event.event);
  event.*into += lost;
  if (plan_.live() && writer != nullptr && writer->stackless) event.stacks.given_up += lost;
  if (plan_.events()[ring_event.event].clock) {
    accounting_.Missed(ring_event.event, lost * writers_.WeightNow(ring_event));
  }
  return true;
}

void LossAccounting::SettleRate(RingEvent& ring_event) {
  if (!plan_.counts_lost() || !plan_.events()[ring_event.event].clock) return;
  unsettled_ |= !SettleEvent(ring_event, KindNow());
}

void LossAccounting::SettleClosed(RingEvent& ring_event) {
  // There is no later reading.
  if (plan_.counts_lost() && !SettleEvent(ring_event, KindNow())) lost_is_lower_bound_ = true;
  if (ring_event.event == RingEvent::kTracking) return;
  if (!AddCount(ring_event, accounting_.event(ring_event.event))) lost_is_lower_bound_ = true;
}

// The last known value is a lower bound of the count.
bool LossAccounting::AddCount(RingEvent& ring_event, EventAccounting& event) const {
  const bool is_read = ring_event.Read(plan_.layout()).has_value();
  event.counted += ring_event.known.value;
  event.counted_is_lower_bound |= !is_read;
  return is_read;
}

void LossAccounting::AddCounts(SamplerStats& stats, bool without_rings) {
  stats.lost_is_lower_bound = !plan_.counts_lost() || lost_is_lower_bound_ || unsettled_;
  rings_.ForEachEvent([&](RingEvent& ring_event) {
    stats.events_stuck += ring_event.stuck ? 1 : 0;
    if (ring_event.event == RingEvent::kTracking) return;
    if (!AddCount(ring_event, stats.events[ring_event.event])) stats.lost_is_lower_bound = true;
  });
  if (!without_rings) return;
  for (const RingEvent& ring_event : rings_.active.events) {
    if (ring_event.event == RingEvent::kTracking) continue;
    const uint64_t counted = ring_event.known.value - ring_event.taken.value;
    const uint64_t lost = (ring_event.known.lost - ring_event.taken.lost) * writers_.WeightNow(ring_event);
    stats.events[ring_event.event].counted -= counted - std::min(counted, lost);  // What is lost is in no ring.
  }
}

void LossAccounting::WillRead(RingSet& set) const {
  for (RingEvent& ring_event : set.events) {
    (void)ring_event.Read(plan_.layout());  // If it fails, a part of its count moves to the next snapshot.
    ring_event.taken = ring_event.known;
  }
}

// Overwriting rings have two events for each thread and CPU; so have CPUs of two kinds for rings of threads. Events
// that are closed have left their counts in the accounting.
std::vector<SamplerCount> LossAccounting::Counts() {
  std::map<std::array<int, 3>, EventAccounting> sums;
  for (uint32_t event = 0; event < plan_.events().size(); ++event) {
    const EventAccounting& closed = accounting_.event(event);
    if (closed.counted != 0 || closed.counted_is_lower_bound) sums[{static_cast<int>(event), -1, -1}] = closed;
  }
  rings_.ForEachEvent([&](RingEvent& ring_event) {
    if (ring_event.event == RingEvent::kTracking) return;
    AddCount(ring_event, sums[{static_cast<int>(ring_event.event), ring_event.tid, ring_event.cpu}]);
  });
  std::vector<SamplerCount> counts;
  for (const auto& [key, sum] : sums) {
    counts.push_back({.event = static_cast<uint32_t>(key[0]),
                      .tid = key[1],
                      .cpu = key[2],
                      .counted = sum.counted,
                      .counted_is_lower_bound = sum.counted_is_lower_bound});
  }
  return counts;
}

// A ring that overwrites always has room, so it loses records only in a pause. If a ring was nearly full at a pause,
// the cause is not known, and the losses count as `lost`.
bool LossAccounting::IsOfPause(const RingSlot& slot, uint64_t time_ns) {
  if (slot.ring.reader().mode() == RingMode::kOverwrite) return true;
  bool any = false, full = false;
  pauses_.ForEachWithin(slot.previous_time_ns, time_ns, [&](const PauseHistory::Pause& pause) {
    any = true;
    full = full || pause.was_full;
  });
  accounting_.paused_is_lower_bound |= full && !plan_.counts_lost();
  return any && !full;
}

uint32_t LossAccounting::NumberOf(const RingSlot& slot) {
  uint32_t ring = 0, count = 0;
  rings_.ForEachSlot([&](const RingSlot& other) {
    if (&other == &slot) ring = count;
    ++count;
  });
  // The spare set takes turns with the active one, so its rings have the same numbers.
  const size_t before_spare = rings_.active.rings.size() + rings_.side.rings.size();
  return ring < before_spare ? ring : ring - static_cast<uint32_t>(before_spare);
}

// The record has the number of lost records, and is written once there is room again. It does not say whose records
// they were.
bool LossAccounting::Add(const RawRecord& raw, const RingSlot& slot, uint64_t time_ns) {
  const std::optional<LostRecord> lost = LostRecord::Parse(raw, plan_.layout());
  if (!lost) return false;
  const uint32_t ring = NumberOf(slot);
  accounting_.AddLoss({.from_ns = slot.previous_time_ns, .to_ns = time_ns, .lost = lost->lost, .ring = ring});
  const bool of_side_band = ring >= rings_.active.rings.size();
  const bool of_pause = !of_side_band && IsOfPause(slot, time_ns);
  if (!of_side_band && !of_pause) accounting_.told_lost += lost->lost;
  // The kernel's counts have these losses already, and more exactly: the record only says when they were.
  if (!plan_.counts_lost()) AddTold(*lost, slot.previous_time_ns, of_pause);
  return of_side_band;
}

void LossAccounting::AddTold(const LostRecord& lost, uint64_t since_ns, bool of_pause) {
  const Writer* const writer = writers_.Find(lost.id);
  if (writer == nullptr || writer->event == RingEvent::kTracking) {
    accounting_.side_band_lost += of_pause ? 0 : lost.lost;
    return;
  }
  EventAccounting& event = accounting_.event(writer->event);
  (of_pause ? event.paused : event.lost) += lost.lost;
  if (plan_.events()[writer->event].clock) {
    accounting_.Missed(writer->event, lost.lost * writer->weight.At(since_ns));
  }
}

}  // namespace perfkit::sample
