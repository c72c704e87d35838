// Judges metrics of measured events. The interval of each event becomes the interval of the metric, by the evaluator's
// own arithmetic (metric.h), and that is compared with the limits as an event's interval would be.
#include "perfkit/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "perfkit/testing.h"
#include "src/testing/matchers/surroundings.h"

namespace perfkit {
namespace {

using matchers::FindMeasured;
using matchers::Unmeasurable;

MetricPart PartOf(const Cost& cost) {
  MetricPart part;
  part.name = cost.event.name;
  part.value = static_cast<double>(cost.value());
  if (cost.user_only) part.validity.flags |= Validity::kUserOnly;
  // The value of an exact event is the least of its repetitions, so it may be the low end of its own interval.
  const Interval interval = cost.interval();
  part.below = std::max(0.0, part.value - interval.low);
  part.above = std::max(0.0, interval.high - part.value);
  return part;
}

std::string RangeText(const Interval& range) {
  if (range.low == -std::numeric_limits<double>::infinity()) return absl::StrFormat("up to %g", range.high);
  if (range.high == std::numeric_limits<double>::infinity()) return absl::StrFormat("at least %g", range.low);
  return absl::StrFormat("%g to %g", range.low, range.high);
}

// Finds the costs of the metric's events. Returns false, with a verdict, if one has no number.
bool FindCosts(const Metric& metric, const Measurement& measurement, std::vector<const Cost*>& costs,
               Verdict& why_not) {
  const std::span<const std::string> also(&metric.name(), 1);
  for (const std::string& name : metric.events()) {
    const auto has_name = [&](const Cost& cost) { return cost.event.name == name; };
    const auto found = std::ranges::find_if(measurement.costs, has_name);
    EventType named;
    named.name = name;
    const Cost* const cost =
        FindMeasured(measurement, found == measurement.costs.end() ? named : found->event, why_not, also);
    if (cost == nullptr) return false;
    costs.push_back(cost);
  }
  return true;
}

// Returns the cost of an event of the metric whose limits hold on one machine only, whether it was measured or not: the
// same check fails everywhere. Returns nullptr if there is none.
const Cost* FindNoisy(const Metric& metric, const Measurement& measurement) {
  for (const Cost& cost : measurement.costs) {
    const bool is_used = std::ranges::find(metric.events(), cost.event.name) != metric.events().end();
    if (is_used && !detail::MayHaveFixedLimit(cost.event)) return &cost;
  }
  return nullptr;
}

// PERFKIT_REQUIRE may name the metric, or one of its events.
Verdict UnmeasurableMetric(const Metric& metric, const std::string& reason) {
  EventType named;
  named.name = metric.name();
  return Unmeasurable(named, reason, metric.events());
}

}  // namespace

Verdict JudgeMetric(const Measurement& measurement, std::string_view text, Interval range, std::string_view machine) {
  const absl::StatusOr<Metric> metric = Metric::Parse(text);
  if (!metric.ok()) return {Outcome::kFail, std::string(metric.status().message())};
  if (metric->needs_elapsed_time()) {
    return {Outcome::kFail, metric->name() + ": a measurement has no elapsed time: measure task-clock"};
  }
  if (std::isnan(range.low) || std::isnan(range.high)) {
    return {Outcome::kFail, absl::StrFormat("%s: the limit %s is not a number", metric->name(), RangeText(range))};
  }
  const Cost* const noisy = FindNoisy(*metric, measurement);
  if (noisy != nullptr && machine.empty()) {
    return {Outcome::kFail, absl::StrFormat("%s: %s is noisy or a clock: name the machine for which the limit holds",
                                            metric->name(), noisy->event.name)};
  }
  std::vector<const Cost*> costs;
  Verdict why_not;
  if (!FindCosts(*metric, measurement, costs, why_not)) return why_not;
  if (!machine.empty() && matchers::ThisMachine() != machine) {
    return UnmeasurableMetric(
        *metric, absl::StrFormat("the limit holds on machine %s, and this is %s", machine, matchers::ThisMachine()));
  }
  std::vector<MetricPart> parts;
  for (const Cost* const cost : costs) parts.push_back(PartOf(*cost));
  const MetricValue value = metric->Evaluate(parts);
  if (!value.has_value()) return UnmeasurableMetric(*metric, value.reason);
  std::string why = absl::StrFormat("limit %s: %s = %s", RangeText(range), metric->name(), FormatMetric(value));
  for (const Cost* const cost : costs) why += "; " + cost->ToString();
  const double low = value.value - value.below, high = value.value + value.above;
  if (low >= range.low && high <= range.high) return {Outcome::kPass, why};
  if (noisy == nullptr || high < range.low || low > range.high) return {Outcome::kFail, why};
  return UnmeasurableMetric(*metric, absl::StrFormat("too noisy to tell: it lies in %.3g to %.3g; %s", low, high, why));
}

std::string detail::Describe(std::string_view metric, Interval range, std::string_view machine) {
  return absl::StrFormat("has %s of %s%s%s", RangeText(range), metric, machine.empty() ? "" : " on ", machine);
}

}  // namespace perfkit
