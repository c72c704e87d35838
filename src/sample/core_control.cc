// Starts, stops, pauses; changes rates while running.
#include <errno.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "src/sample/core.h"
#include "src/sample/synthesis.h"
#include "src/sys/kernel.h"
#include "src/sys/perf_error.h"

namespace perfkit::sample {

absl::Status Core::CheckHere() const {
  if (!gone_) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "this sampler was opened before a fork, and stayed with the parent. Remedy: open another one here.");
}

absl::Status Core::Start() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  running_ = true;
  if (taker_ != nullptr) (void)taker_->Maintain();  // what it does not know ends walks, which say so
  const uint64_t begun = Now(plan_.options().clock_id);
  for (const Bank* const bank : {&side_, &bank_}) {
    if (absl::Status status = bank->SwitchAll(true, plan_.target().inherit); !status.ok()) return status;
  }
  BeginWindow();
  if (plan_.options().side_band) state_ = SynthesizeState(plan_, begun);
  return absl::OkStatus();
}

absl::Status Core::Stop() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  running_ = false;
  const absl::Status status = bank_.SwitchAll(false, plan_.target().inherit);
  // Whoever may have two of a kind is told apart by FORK and EXIT records, of the time until the next Start too.
  if (roster_.expects_duplicates()) return status;
  const absl::Status side = side_.SwitchAll(false, plan_.target().inherit);
  return status.ok() ? side : status;
}

// What was lost before is settled first, but only where there can have been any: that costs more than the pause.
absl::Status Core::Pause() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (paused_) return absl::OkStatus();
  full_since_ = full_since_ || bank_.IsNearlyFull(plan_.LargestRecord());
  if (full_since_ && !paused_since_) SettleLosses(&EventBooks::lost);
  paused_ = paused_since_ = true;
  if (taker_ != nullptr) taker_->Pause(true);
  return bank_.Pause(true);
}

absl::Status Core::Resume() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (!paused_) return absl::OkStatus();
  // With a full ring the next loss may come at once: what the pause took has to be known before.
  if (bank_.IsNearlyFull(plan_.LargestRecord()) && !full_since_) SettleLosses(&EventBooks::paused);
  paused_ = false;
  if (taker_ != nullptr) taker_->Pause(false);
  return bank_.Pause(false);
}

absl::Status Core::SetRate(size_t event, SampleRate rate) {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (event >= plan_.asked()) return absl::InvalidArgumentError("there is no event of that number");
  const bool same_kind = rate.index() == plan_.events()[event].rate.index();
  const uint64_t value =
      std::holds_alternative<Period>(rate) ? std::get<Period>(rate).events : std::get<Frequency>(rate).hz;
  if (!same_kind || value == 0) {
    return absl::InvalidArgumentError(
        "an event that was opened with a period takes another period, one with a frequency another frequency, and "
        "neither may be 0");
  }
  plan_.SetRate(event, rate);
  anew_due_ = plan_.inherits();  // PERF_EVENT_IOC_PERIOD leaves out those who have inherited the event
  return ApplyRates();
}

// The kernel turns the frequency of a clock into a period when it is opened, and takes only periods from then on
// (perf_swevent_init_hrtimer).
absl::Status Core::ApplyRates() {
  absl::Status failed;
  ForEachLeaf([&](const Leaf& leaf) {
    if (leaf.event == Leaf::kCarrier) return;
    Writer& writer = writers_[ids_.Find(leaf.id)];
    const uint64_t clock_period = plan_.ClockPeriodNs(leaf.event, effort_);
    const uint64_t value = clock_period != 0 ? clock_period : plan_.RateNow(leaf.event, effort_);
    if (sys::kernel().ioctl(leaf.fd.get(), sys::kIocPeriod, reinterpret_cast<unsigned long>(&value)) == 0) {
      writer.represents = plan_.Represents(leaf.event, effort_);
    } else {
      failed =
          sys::PerfError(sys::PerfCall::kIoctl, errno,
                         absl::StrFormat("changing the rate of event '%s'", plan_.events()[leaf.event].config.name));
    }
  });
  return failed;
}

// To send a running event's records elsewhere takes the kernel an RCU grace period, 10 ms here. To switch one event off
// and its twin, which writes elsewhere, on takes 2 us: so there are two of each. The thread that is here can do nothing
// in between; others can, and are written by both for a moment.
absl::StatusOr<Sampler::Takeover> Core::Snapshot() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (plan_.options().mode != RingMode::kOverwrite || !running_) {
    return absl::FailedPreconditionError("snapshots are of RingMode::kOverwrite, and of a sampler that was started");
  }
  const bool alone = plan_.target().kind == Target::Kind::kThisThread && plan_.target().id == sys::kernel().gettid();
  const bool inherited = plan_.target().inherit;
  Sampler::Takeover takeover{.from_ns = Now(plan_.options().clock_id), .to_ns = 0};
  const absl::Status first = alone ? bank_.SwitchAll(false, false) : spare_.SwitchAll(true, inherited);
  const absl::Status second = alone ? spare_.SwitchAll(true, false) : bank_.SwitchAll(false, inherited);
  takeover.to_ns = Now(plan_.options().clock_id);
  if (!first.ok()) return first;
  if (!second.ok()) return second;
  const sys::NoFork whole;
  std::swap(bank_, spare_);
  snapshot_ns_ = takeover.to_ns;
  return takeover;
}

}  // namespace perfkit::sample
