// Settles losses, and sums the accounting.
#include <algorithm>
#include <utility>

#include "src/sample/sampler_impl.h"

namespace perfkit::sample {

std::vector<LossInterval> Accounting::Losses() const {
  std::vector<LossInterval> losses;
  for (uint64_t i = losses_forgotten(); i < loss_count_; ++i) losses.push_back(losses_[i % kLosses]);
  return losses;
}

std::vector<SamplerDecision> Accounting::Decisions() const {
  std::vector<SamplerDecision> decisions;
  for (uint64_t i = decisions_forgotten(); i < decision_count_; ++i) decisions.push_back(decisions_[i % kLosses]);
  return decisions;
}

// Returns 0 for events that are about to take over: they have lost nothing yet.
uint64_t SamplerImpl::WeightNow(const RingEvent& ring_event) const {
  const uint32_t at = ids_.Find(ring_event.id);
  return at != IdTable::kNone ? writers_[at].weight.now() : 0;
}

// On kernels that do not count losses by event, LOST records do (TakeLoss).
void SamplerImpl::SettleEvent(RingEvent& ring_event, uint64_t EventAccounting::*into) {
  const std::optional<EventCount> now = ring_event.Read(plan_.layout());
  if (!now) {
    accounting_.unsettled = true;
    return;
  }
  const uint64_t lost = now->lost - std::exchange(ring_event.lost_settled, now->lost);
  if (ring_event.event == RingEvent::kTracking) {
    accounting_.side_band_lost += lost;
  } else {
    accounting_.event(ring_event.event).*into += lost;
    if (live_handler_ != nullptr && level_.stack == 0) accounting_.event(ring_event.event).stacks.given_up += lost;
    if (plan_.events()[ring_event.event].clock) accounting_.Missed(ring_event.event, lost * WeightNow(ring_event));
  }
}

uint64_t EventAccounting::*SamplerImpl::LossesNow() const {
  const bool paused = paused_ || (paused_since_ && !full_since_);
  return paused ? &EventAccounting::paused : &EventAccounting::lost;
}

void SamplerImpl::SettleLosses(uint64_t EventAccounting::*into) {
  if (plan_.counts_lost()) {
    accounting_.unsettled = false;
    ForEachEvent([&](RingEvent& ring_event) { SettleEvent(ring_event, into); });
  }
  full_since_ = false;
  paused_since_ = false;
}

void SamplerImpl::SettleClosed(RingEvent& ring_event) {
  if (plan_.counts_lost()) SettleEvent(ring_event, paused_since_ ? &EventAccounting::paused : &EventAccounting::lost);
  if (ring_event.event == RingEvent::kTracking) return;
  if (!AddCount(ring_event, accounting_.event(ring_event.event))) accounting_.lost_is_lower_bound = true;
}

// The last known value is a lower bound of the count.
bool SamplerImpl::AddCount(RingEvent& ring_event, EventAccounting& event) const {
  const bool is_read = ring_event.Read(plan_.layout()).has_value();
  event.counted += ring_event.known.value;
  event.counted_is_lower_bound |= !is_read;
  return is_read;
}

// A drain empties the rings, so before it they are as full as they have been since the last one. While paused, they are
// as full as Pause found them.
void SamplerImpl::SettleBeforeDrain() {
  if (paused_) return;
  full_since_ = full_since_ || active_.IsNearlyFull(plan_.LargestRecord());
  if (!paused_since_) return;
  accounting_.paused_is_lower_bound = accounting_.paused_is_lower_bound || full_since_;
  SettleLosses(full_since_ ? &EventAccounting::lost : &EventAccounting::paused);
}

void SamplerImpl::SettleAtEnd() {
  if (!paused_) return SettleBeforeDrain(), SettleLosses(&EventAccounting::lost);
  SettleLosses(&EventAccounting::paused);
  paused_since_ = true;  // The pause continues.
}

SamplerStats SamplerImpl::Stats() {
  SamplerStats stats;
  if (in_forked_child_) return stats;
  SettleAtEnd();
  stats.events = accounting_.events();
  stats.lost_is_lower_bound = !plan_.counts_lost() || accounting_.lost_is_lower_bound || accounting_.unsettled;
  ForEachEvent([&](RingEvent& ring_event) {
    stats.events_stuck += ring_event.stuck ? 1 : 0;
    if (ring_event.event == RingEvent::kTracking) return;
    if (!AddCount(ring_event, stats.events[ring_event.event])) stats.lost_is_lower_bound = true;
  });
  for (size_t i = 0; i < stats.events.size(); ++i) {
    EventAccounting& event = stats.events[i];
    if (live_handler_ != nullptr) FillStackAccounting(i, event);
    if (!plan_.events()[i].clock) continue;
    event.unsampled_ns = event.counted - std::min(event.counted, event.represented + accounting_.missed_ns(i));
  }
  const auto asked = stats.events.begin() + static_cast<ptrdiff_t>(plan_.asked());
  stats.full.assign(asked, stats.events.end());
  stats.events.erase(asked, stats.events.end());
  stats.losses = accounting_.Losses();
  stats.losses_forgotten = accounting_.losses_forgotten();
  stats.paused_is_lower_bound = accounting_.paused_is_lower_bound;
  stats.side_band_lost = accounting_.side_band_lost;
  stats.malformed_bytes = accounting_.malformed_bytes;
  stats.overwritten_bytes = accounting_.overwritten_bytes;
  stats.late = accounting_.late;
  stats.unattributed = accounting_.unattributed;
  stats.threads_missed = threads_missed_;
  AddKernelCost();
  stats.own_cpu_ns = accounting_.own_cpu_ns;
  stats.kernel_cpu_ns = accounting_.kernel_cpu_ns;
  stats.decisions = accounting_.Decisions();
  stats.decisions_forgotten = accounting_.decisions_forgotten();
  stats.decisions_refused = accounting_.decisions_refused;
  return stats;
}

}  // namespace perfkit::sample
