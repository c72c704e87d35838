// Names to a set: what is wrong or missing is told, and costs no other event its place.
#include "src/benchmark/adapter/choice.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "perfkit/benchmark_region.h"
#include "perfkit/count.h"
#include "perfkit/metric_set.h"
#include "src/benchmark/adapter/column.h"

namespace perfkit::adapter {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

TEST_CASE("events keep their order, groups stay together") {
  const Choice choice = Choose("context-switches,{page-faults,task-clock},minor-faults");
  REQUIRE(choice.wanted.size() == 4);
  CHECK(choice.groups.size() == 3);
  CHECK(choice.groups[1].size() == 2);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(choice.wanted[i].index == i);
    CHECK(choice.wanted[i].why_not.empty());
  }
  CHECK(choice.wrong.empty());
}

TEST_CASE("an event that is written twice is counted once") {
  const Choice choice = Choose("page-faults,{task-clock,page-faults,task-clock},page-faults,minor-faults");
  REQUIRE(choice.wanted.size() == 3);
  CHECK(choice.wanted[1].name == "task-clock");
  CHECK(choice.wanted[2].name == "minor-faults");
  CHECK(choice.wanted[2].index == 2);
  REQUIRE(choice.groups.size() == 3);
  CHECK(choice.groups[1].size() == 1);
  const EventSpec specs[] = {event::kPageFaults, "page-faults"};
  CHECK(Choose(specs).wanted.size() == 1);
}

TEST_CASE("a name that means nothing is refused alone, and reported whole") {
  const Choice choice = Choose("cylces,page-faults");
  REQUIRE(choice.wanted.size() == 2);
  CHECK(choice.wanted[0].name == "cylces");
  CHECK_THAT(choice.wanted[0].why_not, Contains("cylces") && !Contains("("));
  CHECK(choice.wanted[1].why_not.empty());
  CHECK(choice.wanted[1].index == 0);
  CHECK_THAT(choice.wrong, Contains("did you mean 'cycles'"));
}

TEST_CASE("metrics bring the events that they need, once and without columns", "[metric]") {
  Choice choice = Choose("page-faults");
  AddMetrics(choice, " a = page-faults / task-clock; b = minor-faults / task-clock ;");
  REQUIRE(choice.metrics.size() == 2);
  CHECK(choice.metrics[0].name == "a");
  CHECK(choice.metrics[1].name == "b");
  REQUIRE(choice.wanted.size() == 3);
  CHECK(choice.groups.size() == 3);
  CHECK_FALSE(choice.wanted[0].for_metrics);
  CHECK(choice.wanted[1].name == "task-clock");
  CHECK(choice.wanted[1].for_metrics);
  CHECK(choice.wanted[2].name == "minor-faults");
  CHECK(choice.wanted[2].index == 2);
  CHECK(choice.wrong.empty());
}

TEST_CASE("a set of metrics by its name brings each event once, or its reason", "[metric]") {
  Choice choice = Choose("cycles,page-faults");
  AddMetrics(choice, "ipc; x = page-faults / instructions");
  if (const absl::StatusOr<MetricSet> set = FindMetricSet("ipc"); !set.ok()) {
    REQUIRE(choice.metrics.size() == 2);
    CHECK(choice.metrics[0].name == "ipc");
    CHECK(choice.metrics[0].why_not == "this machine has no PMU");
    CHECK(choice.wanted.size() == 3);
  } else {
    REQUIRE(choice.metrics.size() == 3);
    CHECK(choice.metrics[1].name == "clock-rate");
    CHECK(choice.wanted.size() == 4);  // cycles, page-faults, instructions, task-clock
  }
  CHECK(choice.wrong.empty());
}

TEST_CASE("a metric that is wrong is refused alone, and reported whole", "[metric]") {
  Choice choice = Choose("page-faults");
  AddMetrics(choice, "a = page-fualts / 2;b = page-faults / 2");
  REQUIRE(choice.metrics.size() == 2);
  CHECK_FALSE(choice.metrics[0].metric);
  CHECK_THAT(choice.metrics[0].why_not, Contains("character 5: event 'page-fualts'"));
  CHECK(choice.metrics[1].metric);
  CHECK_THAT(choice.wrong, Contains("did you mean 'page-faults'"));
  CHECK_THAT(CheckBenchmarkMetrics("x = 2 *"), Contains("expected a number, an event or '(', not the end"));
  CHECK(CheckBenchmarkMetrics("x = 2 * page-faults").empty());
}

TEST_CASE("a metric that has the name of a column is refused", "[metric]") {
  Choice choice = Choose("page-faults");
  AddMetrics(choice, "page-faults = 3 * page-faults; task-clock = page-faults / task-clock; a = 2 * page-faults");
  AddMetrics(choice, "a = 3 * page-faults; a = 2 * page-faults; a = 2 * page-faults [x]");
  CHECK_THAT(choice.wrong,
             Contains("metric 'page-faults'") && Contains("a column is called 'page-faults'") && Contains("Remedy: "));
  REQUIRE(choice.metrics.size() == 5);
  CHECK_THAT(choice.metrics[0].why_not, Contains("a column is called 'page-faults'"));
  CHECK(choice.metrics[1].metric);  // The event is counted for metrics only, and has no column.
  CHECK(choice.metrics[2].metric);
  CHECK_THAT(choice.metrics[3].why_not, Contains("a column is called 'a'"));
  CHECK(choice.metrics[4].metric);  // Its column is called "a[x]"; the one before it is written twice.
}

TEST_CASE("metrics are checked with the counters of the program", "[metric]") {
  char program[] = "program", counters[] = "--perfkit_counters=page-faults",
       metrics[] = "--perfkit_metrics=page-faults = 3 * page-faults";
  char* argv[] = {program, metrics, counters, nullptr};
  int argc = 3;
  CHECK_THAT(TakeBenchmarkFlags(&argc, argv), Contains("a column is called 'page-faults'"));
  setenv("PERFKIT_COUNTERS", "task-clock,cylces", 1);
  CHECK(CheckBenchmarkMetrics("page-faults = 3 * page-faults").empty());
  unsetenv("PERFKIT_COUNTERS");
  unsetenv("PERFKIT_METRICS");
  CHECK_THAT(CheckBenchmarkMetrics("page-faults = 3 * page-faults"), Contains("a column is called 'page-faults'"));
}

TEST_CASE("the error for events that are separated by blanks mentions commas") {
  for (const char* list : {"page-faults cycles", "page-faults;cycles"}) {
    CHECK_THAT(Choose(list).wanted.at(0).why_not, Contains("commas separate events"));
  }
  CHECK_THAT(Choose("cylces").wanted.at(0).why_not, !Contains("commas"));
  CHECK(Choose(" page-faults , minor-faults ").groups.size() == 2);
}

TEST_CASE("constants and texts mix") {
  const EventSpec specs[] = {event::kPageFaults, "minor-faults:u", "allocations", EventType{5, 0, 0, 0, "breakpoint"}};
  const Choice choice = Choose(specs);
  REQUIRE(choice.wanted.size() == 4);
  CHECK(choice.wanted[0].why_not.empty());
  CHECK(choice.wanted[1].index == 1);
  CHECK(choice.wanted[2].index == 2);  // That nothing counts it is known when it is opened.
  CHECK(!choice.wanted[3].why_not.empty());
}

TEST_CASE("what a set cannot hold is refused, not dropped") {
  std::string list = "page-faults";
  for (size_t i = 1; i < kMaxEvents + 2; ++i) list += ",mem:" + std::to_string(4096 * i) + ":x";
  const Choice choice = Choose(list);
  REQUIRE(choice.wanted.size() == kMaxEvents + 2);
  CHECK(choice.groups.size() == kMaxEvents);
  CHECK(choice.wanted[kMaxEvents - 1].why_not.empty());
  CHECK(!choice.wanted[kMaxEvents].why_not.empty());
}

TEST_CASE("hostile lists end in a reason") {
  for (const char* list : {"", ",", "{", "page-faults,,", "\x01\xff", "cpu/", "a,{b,{c}}"}) {
    CAPTURE(list);
    const Choice choice = Choose(list);
    CHECK(choice.groups.empty());
    REQUIRE(choice.wanted.size() == 1);
    CHECK(!choice.wanted[0].why_not.empty());
    CHECK(!choice.wrong.empty());
  }
}

TEST_CASE("a column's name tells unit and whose work it is") {
  EventConfig event;
  event.name = "page-faults";
  CHECK(ColumnName(event, {}) == "page-faults");
  CHECK(ColumnName(event, {Validity::kUserOnly}) == "page-faults:u");
  event.privilege_given = true;
  event.name = "page-faults:u";
  CHECK(ColumnName(event, {Validity::kUserOnly}) == "page-faults:u");
  event.unit = "ns";
  CHECK(ColumnName(event, {}) == "page-faults:u[ns]");
}

TEST_CASE("flags are taken out of the command line, and the last one holds") {
  char program[] = "program", first[] = "--perfkit_counters=cycles", other[] = "--benchmark_filter=x",
       second[] = "--perfkit_counters=page-faults";
  char* argv[] = {program, first, other, second, nullptr};
  int argc = 4;
  CHECK(TakeBenchmarkFlags(&argc, argv).empty());
  CHECK(argc == 2);
  CHECK(argv[1] == other);
  CHECK(argv[2] == nullptr);
  CHECK(BenchmarkCounters() == "page-faults");
  unsetenv("PERFKIT_COUNTERS");
}

TEST_CASE("a flag with a wrong name is an error, and no flag is none") {
  char program[] = "program", wrong[] = "--perfkit_counters=cylces";
  char* argv[] = {program, wrong, nullptr};
  int argc = 2;
  CHECK_THAT(TakeBenchmarkFlags(&argc, argv),
             Catch::StartsWith("--perfkit_counters: event 'cylces'") && Contains("did you mean 'cycles'"));
  unsetenv("PERFKIT_COUNTERS");
  CHECK(argc == 1);
  CHECK(TakeBenchmarkFlags(&argc, argv).empty());
  argc = 0;
  CHECK(TakeBenchmarkFlags(&argc, argv).empty());
  CHECK(BenchmarkCounters() == "instructions,cycles,page-faults");
}

TEST_CASE("the head of the report says what each event is worth") {
  setenv("PERFKIT_COUNTERS", "page-faults,allocations,cylces", 1);
  const BenchmarkContext context = DescribeBenchmarks(false);
  unsetenv("PERFKIT_COUNTERS");
  CHECK_THAT(context.counters, Contains("page-faults") && Contains(" by "));
  CHECK_THAT(context.counters,
             Contains("; allocations n/a (") && Contains("; cylces n/a (") && Contains("did you mean 'cycles'"));
  CHECK_THAT(context.counters, EndsWith("did you mean 'cycles'?)"));
  CHECK_THAT(context.machine, Contains("Linux"));
  CHECK_THAT(context.pauses, Contains("--wrap"));
  CHECK(DescribeBenchmarks(true).pauses == "excluded from all counts, as from the times");
}

}  // namespace
}  // namespace perfkit::adapter
