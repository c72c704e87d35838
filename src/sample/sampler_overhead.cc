// Keeps a sampler's cost within its budget: measures windows of time, and carries out what the OverheadController
// decides.
//
// The contents of a sample are fixed when its event is opened, and threads that have inherited an event keep its
// period. So a change replaces the events. The new ones are opened beside the old ones, disabled, which takes long.
// Then, in some microseconds, the old ones are disabled, the rings drained, the accounting settled, and the new ones
// enabled. Records of the old events stay in the rings, and their ids stay known until those records have been read.
// The side band has events of its own, which continue. If the level does not change, the new events are enabled first.
// For that moment threads have two copies of an event, and the time of a sample decides which one counts.
#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "src/sample/sampler_impl.h"

namespace perfkit::sample {

void SamplerImpl::AddKernelCost() {
  costed_.resize(plan_.events().size());
  for (size_t i = 0; i < costed_.size(); ++i) {
    const EventAccounting& event = accounting_.event(i);
    const uint64_t taken = event.delivered + event.duplicates + event.malformed;
    accounting_.kernel_cpu_ns += (taken - std::exchange(costed_[i], taken)) * plan_.SampleCostNs(i, level_);
  }
  const uint64_t lost = accounting_.told_lost - std::exchange(costed_lost_, accounting_.told_lost);
  if (live_handler_ != nullptr) accounting_.own_cpu_ns += live_handler_->rings().TakeHandlerNs();
  if (!plan_.events().empty()) accounting_.kernel_cpu_ns += lost * plan_.SampleCostNs(0, level_);
}

void SamplerImpl::BeginWindow() {
  window_begun_ns_ = Now(CLOCK_MONOTONIC);
  window_cpu_ns_ = accounting_.own_cpu_ns + accounting_.kernel_cpu_ns;
  window_lost_ = accounting_.told_lost;
}

// If it fails, the next drain tries again.
void SamplerImpl::AdoptRates(Visit visit, size_t max_records) {
  if (!std::exchange(anew_due_, false)) return;
  SamplerDecision unasked;
  const bool gapless = live_handler_ == nullptr && plan_.options().mode == RingMode::kStream;
  absl::Status status;
  if (!running_) {
    status = OpenAtNewRates();
  } else if (gapless) {
    status = ReplaceEvents();
  } else {
    status = Change(level_, unasked, visit, max_records);
  }
  if (status.ok()) return;
  anew_due_ = true;
  ++accounting_.decisions_refused;
}

void SamplerImpl::EnforceBudget(Visit visit, size_t max_records) {
  if (paused_) return;
  if (!running_) return AdoptRates(visit, max_records);
  SwitchOnStuck();
  AdoptStack(visit, max_records);
  AdoptRates(visit, max_records);
  if (!overhead_.has_budget()) return;
  const uint64_t now = Now(CLOCK_MONOTONIC);
  if (now - window_begun_ns_ < OverheadController::kWindowNs) return;
  AddKernelCost();
  std::optional<SamplerDecision> decision =
      overhead_.Judge({.wall_ns = now - window_begun_ns_,
                       .cpu_ns = accounting_.own_cpu_ns + accounting_.kernel_cpu_ns - window_cpu_ns_,
                       .lost = accounting_.told_lost - window_lost_});
  if (decision) CarryOut(*decision, visit, max_records);
  BeginWindow();  // Afterwards, so that the cost of a decision does not lead to the next one.
}

void SamplerImpl::CarryOut(SamplerDecision& decision, Visit visit, size_t max_records) {
  const uint64_t begun = Now(CLOCK_THREAD_CPUTIME_ID);
  if (Change(overhead_.level(), decision, visit, max_records).ok()) {
    accounting_.AddDecision(decision);
  } else {
    ++accounting_.decisions_refused;
    overhead_.Refused(decision);
  }
  accounting_.own_cpu_ns += Now(CLOCK_THREAD_CPUTIME_ID) - begun;
}

// The handler makes live stacks shorter, so the events stay.
bool SamplerImpl::NeedsAnew(const SamplingLevel& level) const {
  const bool shorter = level.stack != level_.stack && level.slower == level_.slower;
  if (live_handler_ != nullptr && shorter && level.stack != 0 && level_.stack != 0) return false;
  return level.stack != level_.stack || plan_.inherits();
}

// The old events stay enabled while the new ones are opened.
absl::Status SamplerImpl::Change(const SamplingLevel& level, SamplerDecision& decision, Visit visit,
                                 size_t max_records) {
  const bool anew = NeedsAnew(level);
  if (anew) {
    if (absl::Status status = OpenAnew(level); !status.ok()) return status;
  }
  decision.from_ns = Now(plan_.options().clock_id);
  // An event that can't be disabled at the second try either continues until it is closed.
  if (!active_.SwitchEvents(false, plan_.inherits()).ok()) (void)active_.SwitchEvents(false, plan_.inherits());
  absl::Cleanup go_on = [this] {  // If the visitor throws.
    fresh_.clear();
    fresh_spare_.clear();
    (void)active_.SwitchEvents(true, plan_.inherits());
  };
  // Opening events takes milliseconds, in which the rings fill. Ids stay known, because max_records may leave records.
  if (max_records > 0) (void)DrainUntil(Now(plan_.options().clock_id), visit, max_records);
  std::move(go_on).Cancel();
  AddKernelCost();
  absl::Status status;
  if (anew) {
    TakeOver(level, Now(plan_.options().clock_id));
  } else {
    status = ChangeRates(level);
  }
  if (live_handler_ != nullptr && level_.stack != 0) live_handler_->Limit(level_.stack);
  (void)active_.SwitchEvents(true, plan_.inherits());  // SwitchOnStuck tries again.
  decision.to_ns = Now(plan_.options().clock_id);
  return status;
}

absl::Status SamplerImpl::ChangeRates(const SamplingLevel& level) {
  const SamplingLevel before = std::exchange(level_, level);
  absl::Status status = ApplyRates(false);
  if (status.ok()) return status;
  level_ = before;
  (void)ApplyRates(false);  // An event that can't be restored keeps its true weight.
  return status;
}

void SamplerImpl::SwitchOnStuck() {
  for (RingSet* const set : {&side_, &active_}) {
    for (RingEvent& ring_event : set->events)
      ring_event.stuck = ring_event.stuck && !ring_event.Switch(sys::kIocEnable).ok();
  }
}

// Opens events for all existing threads: those that had inherited events get their own. With Rings::kPerThread only for
// threads that have a ring; FollowThreads attaches the others.
absl::Status SamplerImpl::OpenAnew(const SamplingLevel& level) {
  const sys::ForkBlocker fork_blocker;
  std::vector<RingEvent> old = std::exchange(active_.events, {}), old_spare = std::exchange(spare_.events, {});
  InheritanceMap before = std::exchange(inheritance_, InheritanceMap());
  const SamplingLevel in_force = std::exchange(level_, level);
  const absl::Status status = AttachThreads(false);
  level_ = in_force;
  fresh_ = std::exchange(active_.events, std::move(old));
  fresh_spare_ = std::exchange(spare_.events, std::move(old_spare));
  fresh_inheritance_ = std::exchange(inheritance_, std::move(before));
  if (!status.ok()) {
    fresh_.clear();
    fresh_spare_.clear();
  }
  return status;
}

// Leaves no gap: the new events are enabled before the old ones are disabled.
absl::Status SamplerImpl::ReplaceEvents() {
  if (absl::Status status = OpenAnew(level_); !status.ok()) return status;
  overlap_.from_ns = Now(plan_.options().clock_id);
  const auto swap = [this] {
    const sys::ForkBlocker fork_blocker;
    active_.events.swap(fresh_);
  };
  swap();
  (void)active_.SwitchEvents(true, plan_.inherits());  // SwitchOnStuck tries again
  swap();
  overlap_.at_ns = Now(plan_.options().clock_id);
  (void)active_.SwitchEvents(false, plan_.inherits());  // TakeOver closes them in any case
  TakeOver(level_, overlap_.at_ns);
  overlap_.to_ns = Now(plan_.options().clock_id);
  return absl::OkStatus();
}

// Closes the events of `set` and replaces them by `fresh`.
void SamplerImpl::Retire(RingSet& set, std::vector<RingEvent>& fresh) {
  const uint64_t now = Now(plan_.options().clock_id);
  for (RingEvent& ring_event : set.events) {
    if (ring_event.event == RingEvent::kTracking) continue;
    SettleClosed(ring_event);
    if (const uint32_t at = ids_.Find(ring_event.id); at != IdTable::kNone) {
      retired_.push_back({ring_event.id, writers_[at], now});
      retired_.back().writer.retired = true;
    }
  }
  std::erase_if(set.events, [](const RingEvent& ring_event) { return ring_event.event != RingEvent::kTracking; });
  for (RingEvent& ring_event : fresh) set.events.push_back(std::move(ring_event));
  fresh.clear();
}

// A record that was being written when its event was disabled may still appear: its id stays known.
void SamplerImpl::TakeOver(const SamplingLevel& level, uint64_t since_ns) {
  const sys::ForkBlocker fork_blocker;
  // Rings that overwrite may keep records for any time. Samples whose id is dropped here count as foreign.
  constexpr size_t kMaxOverwriting = 4096;
  const bool streams = plan_.options().mode == RingMode::kStream;
  if (!streams && retired_.size() > kMaxOverwriting) retired_.clear();
  std::erase_if(retired_, [&](const Retired& old) { return streams && old.until_ns < drained_ns_; });
  Retire(active_, fresh_);
  Retire(spare_, fresh_spare_);
  retired_inheritance_ = std::exchange(inheritance_, std::exchange(fresh_inheritance_, InheritanceMap()));
  level_ = level;
  Index(since_ns);
}

}  // namespace perfkit::sample
