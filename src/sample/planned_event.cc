// The rates of events: which rates the kernel accepts, how it changes them, and what a sample represents. Rates are
// validated here because the kernel accepts some without an error and then samples differently: it raises the period of
// clocks to a minimum, and ignores the period of some software events. Source: kernel/events/core.c, Linux 4.14 to
// 6.18.
#include "src/sample/planned_event.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/event/tracepoint.h"
#include "src/sys/max_sample_rate.h"
#include "src/sys/perf_abi.h"

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

}  // namespace

bool IsHardware(const EventConfig& config) {
  const uint32_t type = config.parts.front().type;
  const bool in_code = type == sys::kTypeSoftware || type == sys::kTypeTracepoint || type == sys::kTypeBreakpoint;
  return !in_code && config.probe_path.empty();
}

SampleRate DefaultRate(const EventConfig& config, bool clock) {
  constexpr uint64_t kDefaultHz = Frequency().hz;
  if (!clock && !IsHardware(config)) return Period{1};
  return Frequency{std::clamp<uint64_t>(sys::MaxSampleRate().value_or(kDefaultHz), 1, kDefaultHz)};
}

SampleRate Rarer(const SampleRate& rate, uint32_t times) {
  if (const Frequency* const frequency = std::get_if<Frequency>(&rate)) {
    return Frequency{std::max<uint64_t>(1, frequency->hz / times)};
  }
  return Period{Longer(std::get<Period>(rate).events, times)};
}

absl::Status CheckRate(const EventConfig& config, const SampleRate& rate) {
  const uint64_t value = RateOf(rate);
  if (value == 0) {
    return RefuseRate(
        absl::StrFormat("event '%s': a rate of 0 would never give a sample. Remedy: Period{1} or more, "
                        "Frequency{1} or more.",
                        config.name));
  }
  if (std::holds_alternative<Period>(rate)) {
    if (value <= kLongestPeriod) return absl::OkStatus();
    return RefuseRate(absl::StrFormat("event '%s': a period of %d is too long. Remedy: ask for at most %d.",
                                      config.name, value, kLongestPeriod));
  }
  const std::optional<uint64_t> highest = sys::MaxSampleRate();
  if (!highest || value <= *highest) return absl::OkStatus();
  return RefuseRate(
      absl::StrFormat("event '%s': %d samples a second exceed kernel.perf_event_max_sample_rate, %d. "
                      "Remedy: ask for a lower frequency, or %s.",
                      config.name, value, *highest, sys::RaiseMaxSampleRate()));
}

// If an event counts n at once, the kernel takes n samples at a period of 1 (perf_swevent_overflow), and throttles the
// event. If samples have their period, it takes one sample, with the period n (perf_swevent_event).
bool NeedsPeriod(const PlannedEvent& event) {
  if (std::holds_alternative<Frequency>(event.rate)) return !event.clock;
  return std::get<Period>(event.rate).events == 1 && event::MayCountWeight(event.config);
}

bool IsRaisedInCode(const PlannedEvent& event) { return !event.clock && !IsHardware(event.config); }

bool SamplesEach(const PlannedEvent& event, bool with_period) {
  return IsRaisedInCode(event) && std::holds_alternative<Period>(event.rate) && with_period;
}

absl::Status CheckNewRate(const PlannedEvent& event, const SampleRate& rate, bool with_period) {
  if (rate.index() != event.rate.index()) {
    return RefuseRate(absl::StrFormat(
        "event '%s': the new rate must be of the same kind as before, a Period or a Frequency", event.config.name));
  }
  if (absl::Status status = CheckRate(event.config, rate); !status.ok()) return status;
  return CheckPeriod(event, rate, with_period);
}

absl::Status CheckPeriod(const PlannedEvent& event, const SampleRate& rate, bool with_period) {
  if (!SamplesEach(event, with_period) || std::get<Period>(rate).events == 1) return absl::OkStatus();
  return RefuseRate(
      absl::StrFormat("event '%s': if samples have their period (kSamplePeriod, a Frequency of another event, or "
                      "another tracepoint at Period{1} that may count several at once), the kernel samples each "
                      "occurrence of this event, whatever its period. Remedy: Period{1}, or a sampler of its own.",
                      event.config.name));
}

uint64_t RateNow(const PlannedEvent& event, uint32_t slower) {
  const uint64_t shortest = event.clock ? kShortestClockNs : 1;
  if (const Frequency* const frequency = std::get_if<Frequency>(&event.rate)) {
    return std::max<uint64_t>(1, std::min(frequency->hz, kSecondNs / shortest) / slower);
  }
  return Longer(std::max(shortest, std::get<Period>(event.rate).events), slower);
}

uint64_t ClockPeriodNs(const PlannedEvent& event, uint32_t slower) {
  if (!event.clock) return 0;
  const uint64_t now = RateNow(event, slower);
  return std::holds_alternative<Frequency>(event.rate) ? kSecondNs / now : now;
}

// When a clock with a frequency is opened, the kernel converts that to a period, and accepts only periods from then on
// (perf_swevent_init_hrtimer).
uint64_t KernelRate(const PlannedEvent& event, uint32_t slower) {
  return event.clock ? ClockPeriodNs(event, slower) : RateNow(event, slower);
}

uint64_t Represents(const PlannedEvent& event, uint32_t slower, bool with_period) {
  if (event.clock) return ClockPeriodNs(event, slower);
  if (SamplesEach(event, with_period)) return event::MayCountWeight(event.config) ? 0 : 1;
  return std::holds_alternative<Period>(event.rate) ? RateNow(event, slower) : 0;
}

}  // namespace perfkit::sample
