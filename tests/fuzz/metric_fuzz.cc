// Fuzzes the parser and the evaluator of metrics with text: there is a value, or a reason that can be printed.
#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/metric.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/event_roots.h"

namespace perfkit {
namespace {

bool IsPrintable(std::string_view text) {
  return text.size() < 4000 && std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

// The first event counts nothing, the second is multiplexed, the third is missing.
void CheckValue(const Metric& metric) {
  std::vector<NamedCount> counts;
  for (const std::string& event : metric.events()) counts.push_back({event, {counts.size(), 0, 0, {}}});
  if (counts.size() > 1) counts[1].count = {7, 100, 50, {Validity::kMultiplexed}};
  if (counts.size() > 2) counts[2].count = {};
  const MetricValue value = metric.Evaluate(counts, 1'000'000);
  PERFKIT_FUZZ_CHECK(value.has_value() ? std::isfinite(value.value) : !value.reason.empty());
  PERFKIT_FUZZ_CHECK(!value.has_value() || value.validity.counted());
}

}  // namespace

PERFKIT_FUZZ_TARGET(FuzzMetric) {
  static const EventRoots roots = testing::GoldenRoots("kvm_no_pmu");
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<Metric> metric = Metric::Parse(text, roots);
  if (!metric.ok()) {
    PERFKIT_FUZZ_CHECK(IsPrintable(std::string(metric.status().message())));
    return 0;
  }
  PERFKIT_FUZZ_CHECK(!metric->events().empty() && IsPrintable(metric->unit()));
  CheckValue(*metric);
  // What was parsed is parsed again from its own text.
  const absl::StatusOr<Metric> again = Metric::Parse(metric->text(), roots);
  PERFKIT_FUZZ_CHECK(again.ok() && again->events() == metric->events() && again->name() == metric->name());
  return 0;
}

}  // namespace perfkit
