// The rates of events: which rates the kernel accepts, how it changes them, and what a sample represents. Rates are
// validated here because the kernel accepts some without an error and then samples differently: it raises the period of
// clocks to a minimum, and ignores the period of some software events. Source: kernel/events/core.c, Linux 4.14 to
// 6.18.
#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/sample/plan.h"
#include "src/sys/files.h"

namespace perfkit::sample {
namespace {

// The kernel's minimum for the timers of clocks (perf_swevent_init_hrtimer, perf_swevent_start_hrtimer).
constexpr uint64_t kShortestClockNs = 10'000;
constexpr uint64_t kSecondNs = 1'000'000'000;
// The highest bit of perf_event_attr.sample_period must not be set (perf_event_open, _perf_event_period).
constexpr uint64_t kLongestPeriod = std::numeric_limits<int64_t>::max();

uint64_t RateOf(const SampleRate& rate) {
  const Period* const period = std::get_if<Period>(&rate);
  return period != nullptr ? period->events : std::get<Frequency>(rate).hz;
}

uint64_t Longer(uint64_t period, uint32_t times) {
  return period > kLongestPeriod / times ? kLongestPeriod : period * times;
}

absl::Status RefuseRate(std::string text) { return absl::Status(absl::StatusCode::kInvalidArgument, std::move(text)); }

// Returns kernel.perf_event_max_sample_rate. The kernel checks it when an event with a frequency is opened, but not
// when the rate of a clock is changed later, which is a period by then.
std::optional<uint64_t> HighestFrequency() {
  const absl::StatusOr<std::string> text = sys::ReadFile("/proc/sys/kernel/perf_event_max_sample_rate");
  if (!text.ok()) return std::nullopt;
  return base::ParseNumber<uint64_t>(std::string_view(*text).substr(0, text->find('\n')));
}

}  // namespace

bool IsHardware(const EventConfig& config) {
  const uint32_t type = config.parts.front().type;
  const bool in_code = type == sys::kTypeSoftware || type == sys::kTypeTracepoint || type == sys::kTypeBreakpoint;
  return !in_code && config.probe_path.empty();
}

SampleRate DefaultRate(const EventConfig& config, bool clock) {
  constexpr uint64_t kDefaultHz = Frequency().hz;
  if (!clock && !IsHardware(config)) return Period{1};
  return Frequency{std::clamp<uint64_t>(HighestFrequency().value_or(kDefaultHz), 1, kDefaultHz)};
}

SampleRate Rarer(const SampleRate& rate, uint32_t times) {
  if (const Frequency* const frequency = std::get_if<Frequency>(&rate)) {
    return Frequency{std::max<uint64_t>(1, frequency->hz / times)};
  }
  return Period{Longer(std::get<Period>(rate).events, times)};
}

absl::Status Plan::CheckRate(const EventConfig& config, const SampleRate& rate) const {
  const uint64_t value = RateOf(rate);
  if (value == 0) {
    return RefuseRate(
        absl::StrFormat("event '%s': a rate of 0 would never give a sample. Remedy: Period{1} or more, "
                        "Frequency{1} or more.",
                        config.name));
  }
  if (std::holds_alternative<Period>(rate)) {
    if (value <= kLongestPeriod) return absl::OkStatus();
    return RefuseRate(
        absl::StrFormat("event '%s': a period of %d. Remedy: at most %d.", config.name, value, kLongestPeriod));
  }
  const std::optional<uint64_t> highest = HighestFrequency();
  if (!highest || value <= *highest) return absl::OkStatus();
  return RefuseRate(
      absl::StrFormat("event '%s': %d samples a second are more than kernel.perf_event_max_sample_rate, %d. "
                      "Remedy: a lower frequency, or raise it (sysctl, as root).",
                      config.name, value, *highest));
}

absl::Status Plan::CheckNewRate(size_t event, const SampleRate& rate) const {
  const PlannedEvent& planned = events_[event];
  if (rate.index() != planned.rate.index()) {
    return RefuseRate(absl::StrFormat(
        "event '%s': the new rate must be of the same kind as before, a Period or a Frequency", planned.config.name));
  }
  if (absl::Status status = CheckRate(planned.config, rate); !status.ok()) return status;
  return SamplesEach(event) ? CheckPeriod(event, std::get<Period>(rate)) : absl::OkStatus();
}

// If its samples have PERIOD, an event that the kernel's own code raises gives a sample for each occurrence, whatever
// its period (perf_swevent_event).
bool Plan::SamplesEach(size_t event) const {
  const PlannedEvent& planned = events_[event];
  const bool in_code = !planned.clock && !IsHardware(planned.config);
  return in_code && std::holds_alternative<Period>(planned.rate) && layout_.has(Field::kPeriod);
}

absl::Status Plan::CheckPeriod(size_t event, const Period& period) const {
  if (period.events == 1) return absl::OkStatus();
  return RefuseRate(
      absl::StrFormat("event '%s': if samples have their period (kSamplePeriod, or a Frequency of another event), the "
                      "kernel samples each occurrence of this event, whatever its period. Remedy: Period{1}, or a "
                      "sampler of its own.",
                      events_[event].config.name));
}

absl::Status Plan::CheckPeriods() const {
  for (size_t i = 0; i < events_.size(); ++i) {
    if (!SamplesEach(i)) continue;
    if (absl::Status status = CheckPeriod(i, std::get<Period>(events_[i].rate)); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void Plan::SetRate(size_t event, SampleRate rate) {
  events_[event].rate = rate;
  if (events_.size() > asked()) events_[event + asked()].rate = Rarer(rate, options_.stack.full.every);
}

uint64_t Plan::RateNow(size_t event, const SamplingLevel& level) const {
  const SampleRate& rate = events_[event].rate;
  const uint64_t shortest = events_[event].clock ? kShortestClockNs : 1;
  if (const Frequency* const frequency = std::get_if<Frequency>(&rate)) {
    return std::max<uint64_t>(1, std::min(frequency->hz, kSecondNs / shortest) / level.slower);
  }
  return Longer(std::max(shortest, std::get<Period>(rate).events), level.slower);
}

// When a clock with a frequency is opened, the kernel converts that to a period, and accepts only periods from then on
// (perf_swevent_init_hrtimer).
uint64_t Plan::KernelRate(size_t event, const SamplingLevel& level) const {
  return events_[event].clock ? ClockPeriodNs(event, level) : RateNow(event, level);
}

uint64_t Plan::ClockPeriodNs(size_t event, const SamplingLevel& level) const {
  if (!events_[event].clock) return 0;
  const uint64_t now = RateNow(event, level);
  const bool frequency = std::holds_alternative<Frequency>(events_[event].rate);
  return frequency ? kSecondNs / now : now;
}

uint64_t Plan::Represents(size_t event, const SamplingLevel& level) const {
  if (events_[event].clock) return ClockPeriodNs(event, level);
  if (SamplesEach(event)) return 1;
  return std::holds_alternative<Period>(events_[event].rate) ? RateNow(event, level) : 0;
}

}  // namespace perfkit::sample
