// Evaluates a metric for the counts of one region.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/metric.h"

namespace perfkit::count {

// The name of an event as metrics compare it: generic events by their canonical name.
struct EventName {
  explicit EventName(std::string_view written);

  std::string_view word;       // The canonical name, or all that was written before the modifiers.
  std::string_view modifiers;  // "" for none.
  bool is_clock = false;       // Counts time: has no modes.
  bool has_modes = false;      // Counts work in user space, in the kernel, or both.
};

// Evaluates one metric once.
class MetricEvaluator {
 public:
  // `modifiers` are added to the events of `metric` that have modes and no modifiers: for the metric of
  // "instructions:u" beside "cycles:u". The arguments must outlive this.
  MetricEvaluator(const Metric& metric, std::span<const MetricPart> parts, std::string_view modifiers = {})
      : metric_(metric), parts_(parts), modifiers_(modifiers) {}

  MetricValue Evaluate(uint64_t wall_ns);

 private:
  // A number and the bounds of the true one.
  struct Number {
    double value, low, high;
  };
  static Number Exact(double value) { return {value, value, value}; }
  static Number Within(double value, std::initializer_list<double> candidates);
  static std::optional<Number> Compute(Metric::Step::Kind kind, const Number& a, const Number& b);

  const MetricPart* Find(std::string_view event) const;
  std::string CollectParts();
  std::string CheckModes() const;
  std::string Run(uint64_t wall_ns, Number& result) const;

  const Metric& metric_;
  std::span<const MetricPart> parts_;
  std::string_view modifiers_;
  std::vector<const MetricPart*> found_;  // For each event of the metric.
};

}  // namespace perfkit::count
