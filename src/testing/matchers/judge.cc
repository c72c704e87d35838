// Compares costs with limits: of a region, of one region beside another, and of one region at growing sizes. Each
// judgement passes or fails only if its numbers allow it: if the noise covers the limit, or a number is missing, the
// verdict is unmeasurable, with the reason. Growth is the slope of log(cost / shape) over log(size), fitted by least
// squares, with a tolerance by the class of event. Size 0 and a cost of 0 have no logarithm: the size is the test's
// mistake, and the cost makes growth unmeasurable unless it is too fast in any case.
#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "perfkit/testing.h"
#include "src/testing/matchers/surroundings.h"

namespace perfkit {
namespace {

using detail::FormatAmount;
using matchers::FindMeasured;
using matchers::Unmeasurable;

Verdict Decide(bool pass, const std::string& why) { return {pass ? Outcome::kPass : Outcome::kFail, why}; }

std::string LimitText(const EventType& event, const Limit& limit) {
  if (limit.low == std::numeric_limits<int64_t>::min()) return "up to " + FormatAmount(event, limit.high);
  if (limit.low == limit.high) return "exactly " + FormatAmount(event, limit.high);
  return FormatAmount(event, limit.low) + " to " + FormatAmount(event, limit.high);
}

// What costs at size n are divided by. Logarithms are at least 1: a cost can't be divided by log2(1).
double Shape(Growth growth, double n) {
  const double log = std::log2(std::max(n, 2.0));
  switch (growth) {
    case Growth::kConstant: return 1;
    case Growth::kLogN: return log;
    case Growth::kN: return n;
    case Growth::kNLogN: return n * log;
    case Growth::kN2: return n * n;
    case Growth::kN3: return n * n * n;
  }
  return 1;
}

const char* GrowthName(Growth growth) {
  switch (growth) {
    case Growth::kConstant: return "a constant";
    case Growth::kLogN: return "log n";
    case Growth::kN: return "n";
    case Growth::kNLogN: return "n log n";
    case Growth::kN2: return "n^2";
    case Growth::kN3: return "n^3";
  }
  return "?";
}

// Returns the slope of y over x by least squares.
double Slope(const std::vector<double>& x, const std::vector<double>& y) {
  const auto n = static_cast<double>(x.size());
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    sx += x[i];
    sy += y[i];
    sxx += x[i] * x[i];
    sxy += x[i] * y[i];
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

// Sizes that span less than this factor cannot tell n from n log n beyond noise.
constexpr uint64_t kMinSpan = 4;

// Returns why growth can't be fitted over `sizes`, or "".
std::string WrongSizes(const std::vector<uint64_t>& sizes) {
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  if (!sizes.empty() && *least == 0) return "growth over size 0 has no exponent. Remedy: begin with size 1 or more";
  if (!sizes.empty() && *most / *least >= kMinSpan) return "";
  return absl::StrFormat("the largest size must be %d times the smallest, or more", kMinSpan);
}

// The sizes at which a cost is 0, and those at which it is not.
struct CostlessSizes {
  std::string text;  // "4, 16"; "" for none.
  uint64_t largest = 0, smallest_other = std::numeric_limits<uint64_t>::max();
  bool has_others = false;

  void Add(uint64_t size, int64_t cost) {
    if (cost <= 0) {
      absl::StrAppendFormat(&text, "%s%d", text.empty() ? "" : ", ", size);
      largest = std::max(largest, size);
    } else {
      smallest_other = std::min(smallest_other, size);
      has_others = true;
    }
  }
};

}  // namespace

Verdict JudgeCosts(const Measurement& measurement, const Limit& limit, const LimitedEvent& event) {
  if (event.machine.empty() && !detail::MayHaveFixedLimit(event.event)) {
    return {Outcome::kFail, absl::StrFormat("%s is noisy or a clock: name the machine for which the limit holds; "
                                            "On(\"\", ...) names none",
                                            event.event.name)};
  }
  Verdict why_not;
  const Cost* const cost = FindMeasured(measurement, event.event, why_not);
  if (cost == nullptr) return why_not;
  if (!event.machine.empty() && matchers::ThisMachine() != event.machine) {
    return Unmeasurable(event.event, absl::StrFormat("the limit holds on machine %s, and this is %s", event.machine,
                                                     matchers::ThisMachine()));
  }
  const Interval interval = cost->interval();
  const auto low = static_cast<double>(limit.low), high = static_cast<double>(limit.high);
  // An exact cost whose repetitions differ is an interval too: it fails unless all of it is inside.
  std::string beyond;
  if (cost->steady() && interval.low >= low && interval.low <= high && interval.high > high)
    beyond = ", and a repetition has " + FormatAmount(event.event, std::llround(interval.high));
  const std::string why = absl::StrFormat("limit %s%s: %s", LimitText(event.event, limit), beyond, cost->ToString());
  if (interval.low >= low && interval.high <= high) return Decide(true, why);
  const bool apart = interval.high < low || interval.low > high;
  if (apart || cost->steady()) return Decide(false, why);
  return Unmeasurable(event.event, absl::StrFormat("too noisy to tell: the median lies in %s to %s; %s",
                                                   FormatAmount(event.event, std::llround(interval.low)),
                                                   FormatAmount(event.event, std::llround(interval.high)), why));
}

Verdict JudgeUses(const Comparison& comparison, double factor, const EventType& event) {
  if (!matchers::IsFactor(factor)) {
    return {Outcome::kFail,
            absl::StrFormat("%s: a limit of %g of the reference is none: write 0 or more", event.name, factor)};
  }
  Verdict why_not;
  const Cost* const ours = FindMeasured(comparison.subject, event, why_not);
  if (ours == nullptr) return why_not;
  const Cost* const theirs = FindMeasured(comparison.reference, event, why_not);
  if (theirs == nullptr) return why_not;
  const std::string why =
      absl::StrFormat("limit %g of the reference: %s, reference %s", factor, ours->ToString(), theirs->ToString());
  if (std::isinf(factor)) return Decide(true, why);  // Infinity times a reference of 0 is not a number.
  const std::optional<Interval> ratio = comparison.Ratio(event);
  if (!ratio) {
    // The reference costs nothing at least once; exact numbers can still be compared.
    if (!ours->steady()) return Unmeasurable(event, "the reference costs too little for a ratio; " + why);
    return Decide(ours->interval().high <= factor * theirs->interval().low, why);
  }
  if (ratio->high <= factor) return Decide(true, why);
  if (ratio->low > factor || ours->steady()) return Decide(false, why);
  return Unmeasurable(
      event, absl::StrFormat("too noisy to tell: the ratio lies in %.3g to %.3g; %s", ratio->low, ratio->high, why));
}

Verdict JudgeGrowth(const ScalingResult& result, Growth growth, const EventType& event) {
  if (const std::string wrong = WrongSizes(result.sizes); !wrong.empty()) {
    return {Outcome::kFail, absl::StrFormat("%s: %s", event.name, wrong)};
  }
  std::vector<double> x, y;
  CostlessSizes costless;
  // Tolerances of the exponent. They leave room for a constant share of the cost, and, if an event is noisy, for noise.
  double allowed = 0.05;
  for (size_t i = 0; i < result.at.size(); ++i) {
    Verdict why_not;
    const Cost* const cost = FindMeasured(result.at[i], event, why_not);
    if (cost == nullptr) return why_not;
    if (!cost->steady()) allowed = 0.15;
    costless.Add(result.sizes[i], cost->value());
    const auto n = static_cast<double>(result.sizes[i]);
    x.push_back(std::log(n));
    y.push_back(std::log(static_cast<double>(std::max<int64_t>(cost->value(), 1)) / Shape(growth, n)));
  }
  // Costs were divided by the shape: one that grows as the shape does has slope 0. One that grows more slowly has a
  // negative slope and passes.
  const double excess = Slope(x, y);
  // 0 counted as 1. If it is the cost of the smaller sizes, the true growth is faster than the fit.
  const bool mixed = !costless.text.empty() && costless.has_others;
  if (mixed && (excess <= allowed || costless.largest > costless.smallest_other)) {
    return Unmeasurable(event,
                        absl::StrFormat("costs 0 or less at n = %s and more at other sizes, so its growth has no "
                                        "exponent. Remedy: measure sizes at which it costs something\n%s",
                                        costless.text, result.ToString()));
  }
  return Decide(excess <= allowed,
                absl::StrFormat("%s: grows as %s times n^%.3f%s (n^%.2f is allowed)\n%s", event.name,
                                GrowthName(growth), excess, mixed ? " at least" : "", allowed, result.ToString()));
}

namespace detail {

std::string Describe(const Limit& limit, const LimitedEvent& event) {
  const std::string where = event.machine.empty() ? "" : absl::StrFormat(" on %s", event.machine);
  return absl::StrFormat("costs %s %s%s", LimitText(event.event, limit), event.event.name, where);
}
std::string Describe(double factor, const EventType& event) {
  return absl::StrFormat("uses up to %g of the reference's %s", factor, event.name);
}
std::string Describe(Growth growth, const EventType& event) {
  return absl::StrFormat("%s grow no faster than %s", event.name, GrowthName(growth));
}
std::string Describe(std::string_view baseline, Percent tolerance) {
  return absl::StrFormat("is within %g %% of baseline '%s'", tolerance.value, baseline);
}

Properties PropertiesOf(const Measurement& measurement) {
  Properties properties;
  for (const Cost& cost : measurement.costs) {
    const std::string name(cost.event.name);
    if (!cost.measured()) {
      properties.emplace_back("perfkit." + name, "n/a: " + cost.unmeasurable);
      continue;
    }
    properties.emplace_back("perfkit." + name, absl::StrFormat("%d", cost.value()));
    properties.emplace_back("perfkit." + name + ".read_path", cost.read_path);
  }
  return properties;
}

Properties PropertiesOf(const Comparison& comparison) {
  Properties properties = PropertiesOf(comparison.subject);
  for (auto& [name, value] : PropertiesOf(comparison.reference)) properties.emplace_back(name + ".reference", value);
  return properties;
}

Properties PropertiesOf(const ScalingResult& result) {
  Properties properties;
  for (size_t i = 0; i < result.at.size(); ++i) {
    for (auto& [name, value] : PropertiesOf(result.at[i])) {
      properties.emplace_back(absl::StrFormat("%s.n%d", name, result.sizes[i]), value);
    }
  }
  return properties;
}

}  // namespace detail
}  // namespace perfkit
