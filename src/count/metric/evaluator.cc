// The only evaluator of metrics. Each number has bounds, by interval arithmetic, because matchers have to tell a limit
// from noise; the bounds of counts are the counts themselves.
#include "src/count/metric/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "perfkit/measured_events.h"
#include "src/base/scale.h"
#include "src/base/text.h"
#include "src/count/table.h"
#include "src/event/event_table.h"
#include "src/event/generic.h"

namespace perfkit {
namespace count {
namespace {

constexpr double kNsPerSecond = 1e9;

std::optional<double> Estimate(const Count& count) {
  if (!HasNumber(count)) return std::nullopt;
  if (count.time_enabled_ns == 0) return static_cast<double>(count.value);  // A path that cannot multiplex.
  if (count.validity.has(Validity::kSomeCpus)) return static_cast<double>(count.value);
  const std::optional<uint64_t> scaled = base::Scale(count.value, count.time_enabled_ns, count.time_running_ns);
  if (!scaled) return std::nullopt;
  return static_cast<double>(*scaled);
}

}  // namespace

EventName::EventName(std::string_view written) : word(written) {
  const auto [name, letters] = base::Cut(written, ':');
  if (const event::TableEvent* const known = event::FindTableEvent(name)) {
    word = known->type.name;
    modifiers = letters;
    is_clock = known->unit == "ns";
    has_modes = !is_clock && !known->kernel_side && known->type.type != kMeasuredType;
  } else if (event::ParseRaw(name)) {
    modifiers = letters;
    word = name;
    has_modes = true;
  } else if (const size_t slash = written.rfind('/'); slash != std::string_view::npos) {
    modifiers = written.substr(slash + 1);
    word = written.substr(0, slash);
    has_modes = written.substr(0, slash).find(':') == std::string_view::npos;  // Neither a breakpoint nor a probe.
  }
}

// Looks for the same event with the same modifiers: user instructions over all cycles would be a wrong number, not a
// rough one.
const MetricPart* MetricEvaluator::Find(std::string_view event) const {
  EventName wanted(event);
  if (wanted.modifiers.empty() && wanted.has_modes) wanted.modifiers = modifiers_;
  for (const MetricPart& part : parts_) {
    const EventName candidate(part.name);
    if (candidate.word == wanted.word && candidate.modifiers == wanted.modifiers) return &part;
  }
  return nullptr;
}

// Finds the part of each event. Returns why one has no number, or "".
std::string MetricEvaluator::CollectParts() {
  for (const std::string& event : metric_.events_) {
    const MetricPart* const part = Find(event);
    if (part == nullptr) return absl::StrFormat("%s: not among the counted events", event);
    if (!part->validity.counted()) {
      return absl::StrFormat("%s: %s", event, part->reason.empty() ? "not counted" : part->reason);
    }
    found_.push_back(part);
  }
  return metric_.steps_.empty() ? "an empty metric" : "";
}

// Returns why parts do not go together: one covers user space only and another one all, although neither was written
// so. Clocks, events that the kernel raises itself, and those that perf does not have, have no modes.
std::string MetricEvaluator::CheckModes() const {
  std::string_view all, user_only;
  for (size_t i = 0; i < found_.size(); ++i) {
    const EventName name(metric_.events_[i]);
    if (!name.has_modes || !name.modifiers.empty()) continue;
    (found_[i]->validity.has(Validity::kUserOnly) ? user_only : all) = metric_.events_[i];
  }
  if (all.empty() || user_only.empty()) return "";
  return absl::StrFormat("%s is of user space only, and %s is not", user_only, all);
}

// The result lies between the least and the greatest of these. A limit that can't be told (0 * infinity) is none.
MetricEvaluator::Number MetricEvaluator::Within(double value, std::initializer_list<double> candidates) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (std::ranges::any_of(candidates, [](double at) { return std::isnan(at); })) return {value, -kInfinity, kInfinity};
  const auto [low, high] = std::minmax(candidates);
  return {value, low, high};
}

// Returns nullopt for a division by 0.
std::optional<MetricEvaluator::Number> MetricEvaluator::Compute(Metric::Step::Kind kind, const Number& a,
                                                                const Number& b) {
  using Kind = Metric::Step::Kind;
  if (kind == Kind::kAdd) return Number{a.value + b.value, a.low + b.low, a.high + b.high};
  if (kind == Kind::kSubtract) return Number{a.value - b.value, a.low - b.high, a.high - b.low};
  if (kind == Kind::kMultiply) {
    return Within(a.value * b.value, {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high});
  }
  if (b.value == 0) return std::nullopt;
  if (b.low <= 0 && b.high >= 0) {  // The true quotient may be any number.
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return Number{a.value / b.value, -kInfinity, kInfinity};
  }
  return Within(a.value / b.value, {a.low / b.low, a.low / b.high, a.high / b.low, a.high / b.high});
}

// Returns why there is no result, or "".
std::string MetricEvaluator::Run(uint64_t wall_ns, Number& result) const {
  using Kind = Metric::Step::Kind;
  std::vector<Number> stack;
  for (const Metric::Step& step : metric_.steps_) {
    switch (step.kind) {
      case Kind::kNumber: stack.push_back(Exact(step.number)); continue;
      case Kind::kSeconds: stack.push_back(Exact(static_cast<double>(wall_ns) / kNsPerSecond)); continue;
      case Kind::kNanoseconds: stack.push_back(Exact(static_cast<double>(wall_ns))); continue;
      case Kind::kEvent: {
        const MetricPart& part = *found_[step.event];
        stack.push_back({part.value, part.value - part.below, part.value + part.above});
        continue;
      }
      default: break;
    }
    // The parser has made the steps: there are always two operands.
    const Number right = stack.back();
    stack.pop_back();
    const std::optional<Number> computed = Compute(step.kind, stack.back(), right);
    if (!computed) return "division by 0";
    stack.back() = *computed;
  }
  result = stack.back();
  return std::isfinite(result.value) ? "" : "out of the range of numbers";
}

MetricValue MetricEvaluator::Evaluate(uint64_t wall_ns) {
  MetricValue result;
  result.unit = metric_.unit_;
  result.reason = CollectParts();
  if (!result.reason.empty()) return result;
  if (metric_.needs_elapsed_time_ && wall_ns == 0) {
    result.reason = "the elapsed time is not known: pass wall_ns, or divide by task-clock";
    return result;
  }
  result.validity = {};
  result.coverage = 1;
  for (const MetricPart* const part : found_) {
    result.validity = result.validity | part->validity;
    result.coverage = std::min(result.coverage, part->coverage);
  }
  Number number{};
  result.reason = CheckModes();
  if (result.reason.empty()) result.reason = Run(wall_ns, number);
  if (!result.reason.empty()) return result;
  result.value = number.value;
  result.below = number.value - number.low;
  result.above = number.high - number.value;
  return result;
}

}  // namespace count

MetricPart::MetricPart(const NamedCount& counted)
    : name(counted.name), coverage(counted.count.coverage()), validity(counted.count.validity), reason(counted.reason) {
  const std::optional<double> estimate = count::Estimate(counted.count);
  value = estimate.value_or(0) * counted.scale;
  if (estimate) return;
  if (reason.empty()) reason = count::WhyNone(counted.count);
  if (validity.counted()) validity = {Validity::kNotCounted};
}

MetricValue Metric::Evaluate(std::span<const MetricPart> parts, uint64_t wall_ns) const {
  return count::MetricEvaluator(*this, parts).Evaluate(wall_ns);
}

MetricValue Metric::Evaluate(std::span<const NamedCount> counts, uint64_t wall_ns) const {
  return Evaluate(std::vector<MetricPart>(counts.begin(), counts.end()), wall_ns);
}

}  // namespace perfkit
