// Starts, stops, pauses and takes snapshots, and changes rates while the sampler runs. Start and Stop switch all
// events, Pause the output of the rings, which is cheaper. Snapshot swaps two sets of rings. A rate is changed by ioctl
// if each event has one thread; if threads inherit events, the ioctl does not reach all of them, so Drain then replaces
// the events (sampler_overhead.cc).
#include <errno.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/sample/sampler_impl.h"
#include "src/sample/synthesis.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"

namespace perfkit::sample {

absl::Status SamplerImpl::CheckHere() const {
  if (!in_forked_child_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this sampler was opened before a fork and belongs to the parent process. Remedy: open another one in this "
      "process.");
}

absl::Status SamplerImpl::Start() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  running_ = true;
  if (live_handler_ != nullptr) (void)live_handler_->MaintainBriefly();  // On an error, walks end at unknown code.
  const uint64_t begun = Now(plan_.options().clock_id);
  ForEachSlot([&](RingSlot& slot) {  // New records are later, even if the clock of a foreign sample was ahead.
    if (!slot.ring.reader().has_records()) slot.last_time_ns = std::max(slot.last_time_ns, begun);
  });
  for (RingSet* const set : {&side_, &active_}) {
    const absl::Status status = set->SwitchAll(true, plan_.target().inherit);
    if (status.ok()) continue;
    (void)Stop();  // Some of the events alone would give wrong counts.
    return status;
  }
  if (follows_threads()) {
    const sys::ForkBlocker fork_blocker;
    rescan_ = true;
    AttachNewcomers();
    Index(Now(plan_.options().clock_id));
  }
  BeginWindow();
  if (plan_.options().side_band) {
    state_ = SynthesizeState(plan_, begun);
    state_given_ = 0;
  }
  return absl::OkStatus();
}

absl::Status SamplerImpl::Stop() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  running_ = false;
  const absl::Status status = active_.SwitchAll(false, plan_.target().inherit);
  // If threads may have two copies of an event, their FORK and EXIT records are needed even between Stop and Start.
  if (inheritance_.expects_duplicates()) return status;
  const absl::Status side = side_.SwitchAll(false, plan_.target().inherit);
  return status.ok() ? side : status;
}

// Settles earlier losses first, but only if there can be any: that costs more than the pause.
absl::Status SamplerImpl::Pause() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (paused_) return absl::OkStatus();
  full_since_ = full_since_ || active_.IsNearlyFull(plan_.LargestRecord());
  if (full_since_ && !paused_since_) SettleLosses(&EventAccounting::lost);
  paused_ = paused_since_ = true;
  if (live_handler_ != nullptr) live_handler_->Pause(true);
  return PauseRings(true);
}

absl::Status SamplerImpl::Resume() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (!paused_) return absl::OkStatus();
  // If a ring is full, the next loss may follow at once, so the losses of the pause are settled before.
  if (active_.IsNearlyFull(plan_.LargestRecord()) && !full_since_) SettleLosses(&EventAccounting::paused);
  paused_ = false;
  if (live_handler_ != nullptr) live_handler_->Pause(false);
  return PauseRings(false);
}

// Includes the set that takes over at the next snapshot.
absl::Status SamplerImpl::PauseRings(bool pause) const {
  absl::Status status = active_.Pause(pause);
  status.Update(spare_.Pause(pause));
  return status;
}

absl::Status SamplerImpl::SetRate(size_t event, SampleRate rate) {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (event >= plan_.asked()) return absl::InvalidArgumentError("there is no event with that index");
  if (absl::Status valid = plan_.CheckNewRate(event, rate); !valid.ok()) return valid;
  const SampleRate before = plan_.events()[event].rate;
  plan_.SetRate(event, rate);
  // PERF_EVENT_IOC_PERIOD does not reach threads that have inherited the event, and their samples have the same id. So
  // the rates of all change together, when the events are replaced.
  if (plan_.inherits()) {
    if (running_ || HasRecords()) {
      anew_due_ = true;  // The records in the rings need the old events' writers.
      return absl::OkStatus();
    }
    absl::Status status = OpenAtNewRates();
    if (!status.ok()) plan_.SetRate(event, before);
    return status;
  }
  absl::Status status = ApplyRates(running_);
  if (status.ok()) return status;
  plan_.SetRate(event, before);
  (void)ApplyRates(running_);  // An event that can't be restored keeps its true weight.
  return status;
}

bool SamplerImpl::HasRecords() {
  bool any = false;
  ForEachSlot([&](const RingSlot& slot) { any = any || slot.ring.reader().has_records(); });
  return any;
}

// Requires that all events are disabled.
absl::Status SamplerImpl::OpenAtNewRates() {
  if (absl::Status status = OpenAnew(level_); !status.ok()) return status;
  TakeOver(level_, Now(plan_.options().clock_id));
  return absl::OkStatus();
}

absl::Status SamplerImpl::ApplyRates(bool on) {
  absl::Status failed;
  for (RingSet* const set : {&active_, &spare_}) {
    for (RingEvent& ring_event : set->events) {
      if (ring_event.event == RingEvent::kTracking) continue;
      if (absl::Status status = ApplyRate(ring_event, on && set == &active_); !status.ok()) failed = status;
    }
  }
  return failed;
}

// The event is disabled during the change, for two reasons. When it is enabled again, it starts with a whole period
// (perf_swevent_add). For an enabled event the kernel takes a sample or two at once, which represent less
// (PERF_EVENT_IOC_PERIOD clears hw.period_left). And no sample is taken at the time of the change.
absl::Status SamplerImpl::ApplyRate(RingEvent& ring_event, bool on) {
  Writer& writer = writers_[ids_.Find(ring_event.id)];
  const uint64_t rate = plan_.KernelRate(ring_event.event, level_);
  if (rate == writer.rate) return absl::OkStatus();
  if (on) {
    if (absl::Status status = ring_event.Switch(sys::kIocDisable); !status.ok()) return status;
  }
  // Losses so far were at the old rate.
  if (plan_.counts_lost() && plan_.events()[ring_event.event].clock) SettleEvent(ring_event, LossesNow());
  absl::Status status;
  if (sys::kernel().ioctl(ring_event.fd.get(), sys::kIocPeriod, reinterpret_cast<unsigned long>(&rate)) == 0) {
    writer.rate = rate;
    writer.weight.Change(Now(plan_.options().clock_id), plan_.Represents(ring_event.event, level_));
  } else {
    status = sys::PerfError(
        sys::PerfCall::kIoctl, errno,
        absl::StrFormat("changing the rate of event '%s'", plan_.events()[ring_event.event].config.name));
  }
  if (!on) return status;
  const absl::Status switched = ring_event.Switch(sys::kIocEnable);
  return status.ok() ? switched : status;
}

// Redirecting the output of an enabled event takes an RCU grace period in the kernel, 10 ms here. Disabling one event
// and enabling another one that writes to another ring takes 2 us. So there are two of each. If the calling thread
// alone is sampled, nothing happens in between. Other threads continue, so both sets are enabled for a moment.
absl::StatusOr<Sampler::Takeover> SamplerImpl::Snapshot() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (plan_.options().mode != RingMode::kOverwrite || !running_) {
    return absl::FailedPreconditionError("snapshots require RingMode::kOverwrite, and a sampler that was started");
  }
  const bool alone = plan_.target().kind == Target::Kind::kThisThread && plan_.target().id == sys::kernel().gettid();
  const bool inherited = plan_.target().inherit;
  Sampler::Takeover takeover{.from_ns = Now(plan_.options().clock_id), .to_ns = 0};
  const absl::Status first = alone ? active_.SwitchAll(false, false) : spare_.SwitchAll(true, inherited);
  const absl::Status second = alone ? spare_.SwitchAll(true, false) : active_.SwitchAll(false, inherited);
  takeover.to_ns = Now(plan_.options().clock_id);
  if (!first.ok()) return first;
  if (!second.ok()) return second;
  const sys::ForkBlocker fork_blocker;
  std::swap(active_, spare_);
  snapshot_ns_ = takeover.to_ns;
  return takeover;
}

}  // namespace perfkit::sample
