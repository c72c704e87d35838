// Counters that a benchmark sets itself, under names that perfkit's columns would have.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "tests/benchmark/capture.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using Catch::Matchers::Contains;
using testing::FreshPages;
using testing::Row;
using testing::RunBenchmark;

// By both names that a column may have: an ordinary user's has ":u".
void SetBoth(benchmark::State& state, const std::string& name, double value) {
  for (const char* user_only : {"", ":u"}) state.counters[name + user_only] = value;
}

double ValueOf(const Row& row, const std::string& name) {
  const auto found = row.counters.find(name);
  return found == row.counters.end() ? -1 : found->second.value;
}

void TouchCounted(CountedLoop&& loop) {
  FreshPages pages(16);
  for ([[maybe_unused]] auto _ : loop) {
    pages.Touch(0, 16);
    pages.Forget();
  }
}

TEST_CASE("a counter of the benchmark's own is not added to a column of its name") {
  const int threads = GENERATE(1, 2, 8);
  const bool one_sets = GENERATE(false, true);  // not each thread
  CAPTURE(threads, one_sets);
  const std::vector<Row> rows = RunBenchmark(
      [&](benchmark::State& state) {
        if (!one_sets || state.thread_index() == threads - 1) SetBoth(state, "page-faults", 1000);
        TouchCounted(counted(state, {"page-faults", "minor-faults"}));
      },
      4, threads);
  REQUIRE(rows.size() == 1);
  const double sum = one_sets ? 1000 : 1000.0 * threads;  // as Google Benchmark adds them up
  CHECK(ValueOf(rows[0], "page-faults") == sum);
  CHECK(ValueOf(rows[0], "page-faults:u") == sum);
  CHECK(testing::Column(rows[0], "minor-faults") == 16);
  CHECK_THAT(rows[0].report_label, Contains("page-faults") && !Contains("minor-faults") &&
                                       Contains(" n/a (the benchmark has a counter of this name)"));
}

TEST_CASE("a counter of the benchmark's own is kept beside a metric of its name, and in the next run is forgotten",
          "[metric]") {
  const auto body = [](bool sets) {
    return RunBenchmark(
               [sets](benchmark::State& state) {
                 if (sets) SetBoth(state, "half", 7);
                 TouchCounted(counted(state, {"minor-faults"}, {"half = page-faults / 2"}));
               },
               4, 2)
        .at(0);
  };
  const Row own = body(true);
  CHECK(ValueOf(own, "half") == 14);
  CHECK(ValueOf(own, "half:u") == 14);
  CHECK_THAT(own.report_label, Contains("half") && Contains(" n/a (the benchmark has a counter of this name)"));
  const Row next = body(false);
  CHECK(testing::Column(next, "half") == 8);
  CHECK(next.report_label.empty());
}

TEST_CASE("a counter that is set after the loop replaces the column") {
  const std::vector<Row> rows = RunBenchmark(
      [](benchmark::State& state) {
        TouchCounted(counted(state, {"page-faults"}));
        SetBoth(state, "page-faults", 1000);
      },
      4, 3);
  CHECK(ValueOf(rows.at(0), "page-faults") == 3000);
  CHECK(ValueOf(rows.at(0), "page-faults:u") == 3000);
}

TEST_CASE("a metric of the environment does not replace a column", "[metric]") {
  setenv("PERFKIT_COUNTERS", "page-faults", 1);
  setenv("PERFKIT_METRICS", "page-faults = 3 * page-faults; twice = 2 * page-faults", 1);
  const std::vector<Row> rows = RunBenchmark([](benchmark::State& state) { TouchCounted(counted(state)); }, 4, 2);
  unsetenv("PERFKIT_COUNTERS");
  unsetenv("PERFKIT_METRICS");
  REQUIRE(rows.size() == 1);
  CHECK(testing::Column(rows[0], "page-faults") == 16);
  CHECK(testing::Column(rows[0], "twice") == 32);
  CHECK_THAT(rows[0].report_label, Contains("n/a (a column is called 'page-faults'"));
}

}  // namespace
}  // namespace perfkit
