// Metrics of hardware counters, on whatever machine this is.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perfkit/format.h"
#include "perfkit/metric_set.h"
#include "perfkit/scope.h"
#include "tests/pmu/pmu.h"

namespace perfkit {
namespace {

TEST_CASE("the set ipc gives the quotients of its counts", "[live][metric]") {
  NEED_PMU();
  const absl::StatusOr<MetricSet> ipc = FindMetricSet("ipc");
  INFO(ipc.status().ToString());
  REQUIRE(ipc.ok());
  const auto events = ParseEventList(ipc->events);
  REQUIRE(events.ok());
  const absl::StatusOr<CounterSet> set = CounterSet::Open(*events);
  INFO(set.status().ToString());
  REQUIRE(set.ok());
  ScopeTotals total;
  {
    CounterScope scope(*set, total);
    testing::Loop(5'000'000);
  }
  const std::optional<uint64_t> cycles = total.count(*set, 0).scaled(), instructions = total.count(*set, 1).scaled();
  REQUIRE((cycles && instructions));
  const std::vector<TableRow> rows = TableRows(*set, total);
  const MetricValue value = ipc->metrics.front().Evaluate(NamedCounts(rows));
  INFO(value.reason);
  REQUIRE(value.has_value());
  CHECK(value.value == Approx(static_cast<double>(*instructions) / static_cast<double>(*cycles)));
}

TEST_CASE("each set of metrics has its events here, or its reason", "[live][metric]") {
  NEED_PMU();
  for (const std::string_view name : MetricSetNames()) {
    INFO(std::string(name));
    const absl::StatusOr<MetricSet> found = FindMetricSet(name);
    if (!found.ok()) {
      CHECK(absl::IsUnavailable(found.status()));
      continue;
    }
    const auto events = ParseEventList(found->events);
    REQUIRE(events.ok());
    CounterOptions options;
    options.require_all = false;
    const absl::StatusOr<CounterSet> set = CounterSet::Open(*events, Target::ThisThread(), options);
    REQUIRE(set.ok());
    ScopeTotals total;
    {
      CounterScope scope(*set, total);
      testing::Loop(1'000'000);
    }
    const std::vector<TableRow> rows = TableRows(*set, total);
    for (const Metric& metric : found->metrics) {
      const MetricValue value = metric.Evaluate(NamedCounts(rows));
      INFO(metric.text() << ": " << value.reason);
      CHECK(value.reason.find("not among") == std::string::npos);
      CHECK((value.validity.counted() || !value.has_value()));
    }
  }
}

}  // namespace
}  // namespace perfkit
