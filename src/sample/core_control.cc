// Starts, stops, pauses; changes rates while running.
#include <errno.h>

#include <algorithm>

#include "absl/strings/str_format.h"
#include "src/sample/core.h"
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
  return bank_.SwitchAll(true, plan_.target().inherit);
}

absl::Status Core::Stop() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  running_ = false;
  return bank_.SwitchAll(false, plan_.target().inherit);
}

// What was lost before is settled first, but only where there can have been any: that costs more than the pause.
absl::Status Core::Pause() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (paused_) return absl::OkStatus();
  full_since_ = full_since_ || bank_.IsNearlyFull(plan_.LargestRecord());
  if (full_since_ && !paused_since_) SettleLosses(&EventBooks::lost);
  paused_ = paused_since_ = true;
  return bank_.Pause(true);
}

absl::Status Core::Resume() {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (!paused_) return absl::OkStatus();
  // With a full ring the next loss may come at once: what the pause took has to be known before.
  if (bank_.IsNearlyFull(plan_.LargestRecord()) && !full_since_) SettleLosses(&EventBooks::paused);
  paused_ = false;
  return bank_.Pause(false);
}

absl::Status Core::SetRate(size_t event, SampleRate rate) {
  if (absl::Status here = CheckHere(); !here.ok()) return here;
  if (event >= plan_.events().size()) return absl::InvalidArgumentError("there is no event of that number");
  const bool same_kind = rate.index() == plan_.events()[event].rate.index();
  const uint64_t value =
      std::holds_alternative<Period>(rate) ? std::get<Period>(rate).events : std::get<Frequency>(rate).hz;
  if (!same_kind || value == 0) {
    return absl::InvalidArgumentError(
        "an event that was opened with a period takes another period, one with a frequency another frequency, and "
        "neither may be 0");
  }
  plan_.SetRate(event, rate);
  return ApplyRates();
}

// The kernel turns the frequency of a clock into a period when it is opened, and takes only periods from then on
// (perf_swevent_init_hrtimer).
absl::Status Core::ApplyRates() {
  for (size_t i = 0; i < bank_.leaves.size(); ++i) {
    const Leaf& leaf = bank_.leaves[i];
    if (leaf.event == Leaf::kCarrier) continue;
    const uint64_t clock_period = plan_.ClockPeriodNs(leaf.event, effort_);
    const uint64_t value = clock_period != 0 ? clock_period : plan_.RateNow(leaf.event, effort_);
    const auto argument = reinterpret_cast<unsigned long>(&value);
    if (sys::kernel().ioctl(leaf.fd.get(), sys::kIocPeriod, argument) != 0) {
      return sys::PerfError(sys::PerfCall::kIoctl, errno,
                            absl::StrFormat("changing the rate of event '%s'", plan_.events()[leaf.event].config.name));
    }
    writers_[i].clock_period_ns = clock_period;
  }
  return absl::OkStatus();
}

}  // namespace perfkit::sample
