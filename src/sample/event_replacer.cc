// Opens new events in the place of the open ones, which wait aside, and exchanges the two: ThreadAttacher opens into
// RingSet::events, so Open swaps the open events into RingSet::fresh before, and back afterwards. Whatever fails, the
// open events are where they were, and still enabled.
#include "src/sample/event_replacer.h"

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
  const sys::ForkBlocker fork_blocker;
  Swap();
  duplicates_.BeginOpening();
  const absl::Status status = attacher_.AttachAll(level, false);
  Swap();
  duplicates_.EndOpening(status.ok());
  if (!status.ok()) Drop();
  return status;
}

void EventReplacer::Drop() {
  for (RingSet* const set : {&rings_.active, &rings_.spare}) set->fresh.clear();
  duplicates_.DropFresh();
}

uint64_t EventReplacer::SwitchOver() {
  ReplacementOverlap& overlap = writers_.overlap();
  overlap.from_ns = Now();
  // RingSet::SwitchEvents is about `events`: the new ones are swapped in to be enabled.
  const auto swap = [this] {
    const sys::ForkBlocker fork_blocker;
    rings_.active.events.swap(rings_.active.fresh);
  };
  swap();
  (void)rings_.active.SwitchEvents(true, plan_.inherits());  // SamplerRings::SwitchOnStuck tries again.
  swap();
  overlap.at_ns = Now();
  (void)rings_.active.SwitchEvents(false, plan_.inherits());  // TakeOver closes them in any case.
  return overlap.at_ns;
}

void EventReplacer::EndOverlap() { writers_.overlap().to_ns = Now(); }

void EventReplacer::Retire(RingSet& set) {
  const uint64_t now = Now();
  for (RingEvent& ring_event : set.events) {
    if (ring_event.event == RingEvent::kTracking) continue;
    losses_.SettleClosed(ring_event);
    writers_.Retire(ring_event, now);
  }
  // This closes them. Their last counts were read just before, and their writers stay known.
  std::erase_if(set.events, [](const RingEvent& ring_event) { return ring_event.event != RingEvent::kTracking; });
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
