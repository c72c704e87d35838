// Keeps a sampler's cost within its budget: measures windows of time, and carries out what the ladder decides.
//
// What a sample holds is fixed when its event is opened, and threads that have inherited an event keep its period. So a
// change opens the events anew: beside the old ones, switched off, which takes long; then, in some microseconds, the
// old ones are switched off, the rings drained, the counts put into the accounting, and the new ones switched on.
// Records of the old events stay in the rings, and their ids stay known until the records have been read. The side band
// has events of its own, and goes on meanwhile. If the effort does not change, the new events are switched on first:
// for that moment threads have two of a kind, and the time of a sample decides which one counts.
#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "src/sample/core.h"

namespace perfkit::sample {

void Core::AddKernelCost() {
  costed_.resize(plan_.events().size());
  for (size_t i = 0; i < costed_.size(); ++i) {
    const EventAccounting& event = accounting_.event(i);
    const uint64_t taken = event.delivered + event.duplicates + event.malformed;
    accounting_.kernel_cpu_ns += (taken - std::exchange(costed_[i], taken)) * plan_.SampleCostNs(i, effort_);
  }
  const uint64_t lost = accounting_.told_lost - std::exchange(costed_lost_, accounting_.told_lost);
  if (taker_ != nullptr) accounting_.own_cpu_ns += taker_->rings().TakeHandlerNs();
  if (!plan_.events().empty()) accounting_.kernel_cpu_ns += lost * plan_.SampleCostNs(0, effort_);
}

void Core::BeginWindow() {
  window_begun_ns_ = Now(CLOCK_MONOTONIC);
  window_cpu_ns_ = accounting_.own_cpu_ns + accounting_.kernel_cpu_ns;
  window_lost_ = accounting_.told_lost;
}

// What cannot be carried out is tried again at the next drain.
void Core::AdoptRates(Visit visit, size_t max_records) {
  if (!std::exchange(anew_due_, false)) return;
  SamplerDecision unasked;
  const bool gapless = taker_ == nullptr && plan_.options().mode == RingMode::kStream;
  absl::Status status;
  if (!running_) {
    status = OpenAtNewRates();
  } else if (gapless) {
    status = ReplaceEvents();
  } else {
    status = Change(effort_, unasked, visit, max_records);
  }
  if (status.ok()) return;
  anew_due_ = true;
  ++accounting_.decisions_refused;
}

void Core::Guard(Visit visit, size_t max_records) {
  if (paused_) return;
  if (!running_) return AdoptRates(visit, max_records);
  SwitchOnStuck();
  AdoptStack(visit, max_records);
  AdoptRates(visit, max_records);
  if (!ladder_.guards()) return;
  const uint64_t now = Now(CLOCK_MONOTONIC);
  if (now - window_begun_ns_ < Ladder::kWindowNs) return;
  AddKernelCost();
  std::optional<SamplerDecision> decision =
      ladder_.Judge({.wall_ns = now - window_begun_ns_,
                     .cpu_ns = accounting_.own_cpu_ns + accounting_.kernel_cpu_ns - window_cpu_ns_,
                     .lost = accounting_.told_lost - window_lost_});
  if (decision) CarryOut(*decision, visit, max_records);
  BeginWindow();  // behind it: what a decision costs must not lead to the next
}

void Core::CarryOut(SamplerDecision& decision, Visit visit, size_t max_records) {
  const uint64_t begun = Now(CLOCK_THREAD_CPUTIME_ID);
  if (Change(ladder_.effort(), decision, visit, max_records).ok()) {
    accounting_.AddDecision(decision);
  } else {
    ++accounting_.decisions_refused;
    ladder_.Refused(decision);
  }
  accounting_.own_cpu_ns += Now(CLOCK_THREAD_CPUTIME_ID) - begun;
}

// A live stack is made shorter by its handler: the events stay.
bool Core::NeedsAnew(const Effort& effort) const {
  const bool shorter = effort.stack != effort_.stack && effort.slower == effort_.slower;
  if (taker_ != nullptr && shorter && effort.stack != 0 && effort_.stack != 0) return false;
  return effort.stack != effort_.stack || plan_.inherits();
}

// While the new events are opened the old ones still run.
absl::Status Core::Change(const Effort& effort, SamplerDecision& decision, Visit visit, size_t max_records) {
  const bool anew = NeedsAnew(effort);
  if (anew) {
    if (absl::Status status = OpenAnew(effort); !status.ok()) return status;
  }
  decision.from_ns = Now(plan_.options().clock_id);
  // What cannot be switched off, even at the second try, goes on until it is closed.
  if (!bank_.SwitchEvents(false, plan_.inherits()).ok()) (void)bank_.SwitchEvents(false, plan_.inherits());
  absl::Cleanup go_on = [this] {  // if the visitor throws
    fresh_.clear();
    fresh_spare_.clear();
    (void)bank_.SwitchEvents(true, plan_.inherits());
  };
  // Opening events takes milliseconds, in which the rings fill. Ids stay known: max_records may leave something.
  if (max_records > 0) (void)DrainUntil(Now(plan_.options().clock_id), visit, max_records);
  std::move(go_on).Cancel();
  AddKernelCost();
  absl::Status status;
  if (anew) {
    TakeOver(effort, Now(plan_.options().clock_id));
  } else {
    status = ChangeRates(effort);
  }
  if (taker_ != nullptr && effort_.stack != 0) taker_->Limit(effort_.stack);
  (void)bank_.SwitchEvents(true, plan_.inherits());  // it is changed: what is stuck is tried again
  decision.to_ns = Now(plan_.options().clock_id);
  return status;
}

absl::Status Core::ChangeRates(const Effort& effort) {
  const Effort before = std::exchange(effort_, effort);
  absl::Status status = ApplyRates(false);
  if (status.ok()) return status;
  effort_ = before;
  (void)ApplyRates(false);  // an event that cannot be changed back keeps the weight that is true of it
  return status;
}

void Core::SwitchOnStuck() {
  for (Bank* const bank : {&side_, &bank_}) {
    for (Leaf& leaf : bank->leaves) leaf.stuck = leaf.stuck && !leaf.Switch(sys::kIocEnable).ok();
  }
}

// Of all threads that there are: those that had inherited their events get their own. Rings for one thread each are
// for those that have one; FollowThreads joins the others.
absl::Status Core::OpenAnew(const Effort& effort) {
  const sys::NoFork whole;
  std::vector<Leaf> old = std::exchange(bank_.leaves, {}), old_spare = std::exchange(spare_.leaves, {});
  Roster before = std::exchange(roster_, Roster());
  const Effort in_force = std::exchange(effort_, effort);
  const absl::Status status = AttachThreads(false);
  effort_ = in_force;
  fresh_ = std::exchange(bank_.leaves, std::move(old));
  fresh_spare_ = std::exchange(spare_.leaves, std::move(old_spare));
  fresh_roster_ = std::exchange(roster_, std::move(before));
  if (!status.ok()) {
    fresh_.clear();
    fresh_spare_.clear();
  }
  return status;
}

// Leaves no gap: the new events are on before the old ones are off.
absl::Status Core::ReplaceEvents() {
  if (absl::Status status = OpenAnew(effort_); !status.ok()) return status;
  overlap_.from_ns = Now(plan_.options().clock_id);
  const auto swap = [this] {
    const sys::NoFork whole;
    bank_.leaves.swap(fresh_);
  };
  swap();
  (void)bank_.SwitchEvents(true, plan_.inherits());  // SwitchOnStuck tries again
  swap();
  overlap_.at_ns = Now(plan_.options().clock_id);
  (void)bank_.SwitchEvents(false, plan_.inherits());  // TakeOver closes them in any case
  TakeOver(effort_, overlap_.at_ns);
  overlap_.to_ns = Now(plan_.options().clock_id);
  return absl::OkStatus();
}

// Closes the events of `bank` and puts `fresh` in their place.
void Core::Retire(Bank& bank, std::vector<Leaf>& fresh) {
  const uint64_t now = Now(plan_.options().clock_id);
  for (Leaf& leaf : bank.leaves) {
    if (leaf.event == Leaf::kCarrier) continue;
    SettleClosed(leaf);
    if (const uint32_t at = ids_.Find(leaf.id); at != IdTable::kNone) {
      retired_.push_back({leaf.id, writers_[at], now});
      retired_.back().writer.retired = true;
    }
  }
  std::erase_if(bank.leaves, [](const Leaf& leaf) { return leaf.event != Leaf::kCarrier; });
  for (Leaf& leaf : fresh) bank.leaves.push_back(std::move(leaf));
  fresh.clear();
}

// A record that was being written when its event was switched off may still come: under an id that is known.
void Core::TakeOver(const Effort& effort, uint64_t since_ns) {
  const sys::NoFork whole;
  // Rings that overwrite may keep records for any time. Samples whose id is dropped here count as foreign.
  constexpr size_t kMostOverwriting = 4096;
  const bool streams = plan_.options().mode == RingMode::kStream;
  if (!streams && retired_.size() > kMostOverwriting) retired_.clear();
  std::erase_if(retired_, [&](const Retired& old) { return streams && old.until_ns < drained_ns_; });
  Retire(bank_, fresh_);
  Retire(spare_, fresh_spare_);
  retired_roster_ = std::exchange(roster_, std::exchange(fresh_roster_, Roster()));
  effort_ = effort;
  Index(since_ns);
}

}  // namespace perfkit::sample
