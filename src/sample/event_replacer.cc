// Opens new events in the place of the open ones, which wait aside, and exchanges the two: ThreadAttacher opens into
// RingSet::events, so Open swaps the open events into RingSet::fresh before, and back afterwards. Whatever fails, the
// open events are where they were, and still enabled.
#include "src/sample/event_replacer.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "src/sys/clock.h"
#include "src/sys/fork_registry.h"

namespace perfkit::sample {

uint64_t EventReplacer::Now() const { return sys::ClockNs(plan_.options().clock_id); }

void EventReplacer::Swap() {
  for (RingSet* const set : {&rings_.active, &rings_.spare}) set->events.swap(set->fresh);
}

absl::Status EventReplacer::Open(const SamplingLevel& level) {
  CloseReplaced();
  const sys::ForkBlocker fork_blocker;
  Swap();
  duplicates_.BeginOpening();
  const absl::Status status = attacher_.AttachAll(level, false);
  Swap();
  duplicates_.EndOpening(status.ok());
  if (!status.ok()) Drop();
  return status;
}

void EventReplacer::CloseReplaced() {
  ReplacementOverlap& overlap = writers_.overlap();
  if (overlap.to_ns == UINT64_MAX) overlap.to_ns = Now();  // It lasts until here: SwitchOver.
  if (rings_.active.closing.empty() && rings_.spare.closing.empty()) return;
  const sys::ForkBlocker fork_blocker;
  for (RingSet* const set : {&rings_.active, &rings_.spare}) set->closing.clear();
}

void EventReplacer::Drop() {
  for (RingSet* const set : {&rings_.active, &rings_.spare}) set->fresh.clear();
  duplicates_.DropFresh();
}

uint64_t EventReplacer::SwitchOver() {
  ReplacementOverlap& overlap = writers_.overlap();
  overlap.from_ns = Now();
  overlap.to_ns = UINT64_MAX;
  // RingSet::SwitchEvents is about `events`: the new ones are swapped in to be enabled.
  const auto swap = [this] {
    const sys::ForkBlocker fork_blocker;
    rings_.active.events.swap(rings_.active.fresh);
  };
  swap();
  (void)rings_.active.SwitchEvents(true, plan_.inherits());  // SamplerRings::SwitchOnStuck tries again.
  swap();
  overlap.at_ns = Now();
  (void)rings_.active.SwitchEvents(false, plan_.inherits());  // TakeOver tries again.
  return overlap.at_ns;
}

void EventReplacer::Retire(RingSet& set) {
  const uint64_t now = Now();
  const bool disabled = set.SwitchEvents(false, plan_.inherits()).ok();
  for (RingEvent& ring_event : set.events) {
    if (ring_event.event == RingEvent::kTracking) continue;
    losses_.SettleClosed(ring_event);
    writers_.Retire(ring_event, now);
  }
  // Their last counts were read just before, and their writers stay known. The next drain closes them, or this, if they
  // may still count.
  const auto replaced = std::stable_partition(set.events.begin(), set.events.end(), [](const RingEvent& ring_event) {
    return ring_event.event == RingEvent::kTracking;
  });
  if (disabled) std::move(replaced, set.events.end(), std::back_inserter(set.closing));
  set.events.erase(replaced, set.events.end());
  for (RingEvent& ring_event : set.fresh) set.events.push_back(std::move(ring_event));
  set.fresh.clear();
}

// A record that was being written when its event was disabled may still appear: its id stays known.
void EventReplacer::TakeOver(uint64_t drained_ns) {
  const sys::ForkBlocker fork_blocker;
  writers_.ForgetRetired(drained_ns);
  Retire(rings_.active);
  Retire(rings_.spare);
  duplicates_.TakeOver();
}

}  // namespace perfkit::sample
