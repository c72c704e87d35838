// Metrics against numbers that simpleperf and perf printed, and against what must not be computed.
#include <catch2/catch.hpp>
#include <vector>

#include "perfkit/format.h"

namespace perfkit {
namespace {

Count Counted(uint64_t value) { return {value, 0, 0, {}}; }
Count UserOnly(uint64_t value) { return {value, 0, 0, {Validity::kUserOnly}}; }
Count Multiplexed(uint64_t value, uint64_t enabled, uint64_t running) {
  return {value, enabled, running, {Validity::kMultiplexed}};
}

std::string Text(const std::vector<NamedCount>& counts, size_t i, uint64_t wall_ns = 0) {
  const std::optional<MetricValue> metric = MetricFor(counts, i, wall_ns);
  return metric ? FormatMetric(*metric) : "";
}

TEST_CASE("metrics: what perf stat prints for the same numbers") {
  // Numbers and comments of a published `perf stat` run: 22.16 msec task-clock # 0.975 CPUs utilized,
  // 66,957,848 cycles # 3.022 GHz, 21,933,617 instructions # 0.33 insn per cycle.
  const std::vector<NamedCount> counts = {
      {"task-clock", Counted(22'156'000)}, {"cycles", Counted(66'957'848)}, {"instructions", Counted(21'933'617)}};
  CHECK(Text(counts, 0, 22'724'000) == "0.98 CPUs used");
  CHECK(Text(counts, 1) == "3.02 GHz");
  CHECK(Text(counts, 2) == "0.33 insn/cycle");
}

TEST_CASE("metrics: every miss has its own denominator") {
  for (const auto& [misses, all, unit] :
       std::vector<std::array<const char*, 3>>{{"cache-misses", "cache-references", "% of cache references"},
                                               {"branch-misses", "branches", "% of branches"},
                                               {"branch-misses", "branch-instructions", "% of branches"},
                                               {"L1-dcache-load-misses", "L1-dcache-loads", "% of L1-dcache loads"},
                                               {"LLC-load-misses", "LLC-loads", "% of LLC loads"},
                                               {"dTLB-load-misses", "dTLB-loads", "% of dTLB loads"},
                                               {"iTLB-load-misses", "iTLB-loads", "% of iTLB loads"}}) {
    INFO(misses);
    CHECK(Text({{"instructions", Counted(9)}, {misses, Counted(5)}, {all, Counted(200)}}, 1) ==
          std::string("2.50 ") + unit);
  }
}

TEST_CASE("metrics: all else is a rate, with the unit that fits") {
  const uint64_t second = 1'000'000'000;
  CHECK(Text({{"page-faults", Counted(7)}}, 0, second) == "7.00 /s");
  CHECK(Text({{"page-faults", Counted(2'100)}}, 0, second) == "2.10 K/s");
  CHECK(Text({{"instructions", Counted(3'500'000)}}, 0, second) == "3.50 M/s");
  CHECK(Text({{"instructions", Counted(4'200'000'000)}}, 0, second) == "4.20 G/s");
  CHECK(Text({{"cycles", Counted(1'500'000'000)}}, 0, second) == "1.50 GHz of wall time");
  CHECK(Text({{"cache-misses", Counted(1'000)}}, 0, second) == "1.00 K/s");
}

TEST_CASE("metrics: nothing is made of what was not counted") {
  CHECK(Text({{"instructions", Count{}}, {"cycles", Counted(5)}}, 0, 100).empty());
  CHECK(Text({{"instructions", Counted(5)}, {"cycles", Count{}}}, 0).empty());
  CHECK(Text({{"instructions", Counted(5)}, {"cycles", Counted(0)}}, 0).empty());
  CHECK(Text({{"page-faults", Counted(5)}}, 0, 0).empty());
  CHECK(Text({{"page-faults", Counted(5)}}, 1, 100).empty());
  CHECK(Text({}, 0, 100).empty());
  CHECK(Text({{"page-faults", {5, 0, 0, {Validity::kOtherThread}}}}, 0, 100).empty());
  // Asked for, and never on a counter: there is no estimate.
  CHECK(Text({{"cycles", Multiplexed(0, 100, 0)}, {"task-clock", Counted(5)}}, 0, 100).empty());
}

TEST_CASE("metrics: multiplexed counts are scaled, and the lowest coverage goes along") {
  const std::vector<NamedCount> counts = {{"instructions", Multiplexed(500, 1000, 500)},
                                          {"cycles", Multiplexed(250, 1000, 250)}};
  const std::optional<MetricValue> metric = MetricFor(counts, 0, 0);
  REQUIRE(metric);
  CHECK(metric->value == Approx(1.0));
  CHECK(metric->coverage == Approx(0.25));
}

TEST_CASE("metrics: rates are in the event's unit, and of a row's own count") {
  const uint64_t second = 1'000'000'000;
  CHECK(Text({{"power/energy-pkg/", Counted(1000), 0.25}}, 0, second) == "250.00 /s");
  const std::vector<NamedCount> twice = {
      {"instructions", Counted(10)}, {"instructions", Counted(40)}, {"cycles", Counted(20)}};
  CHECK(Text(twice, 0) == "0.50 insn/cycle");
  CHECK(Text(twice, 1) == "2.00 insn/cycle");
}

TEST_CASE("metrics: only counts of the same modes relate") {
  CHECK(Text({{"instructions:u", Counted(10)}, {"cycles", Counted(5)}}, 0).empty());
  CHECK(Text({{"instructions:u", Counted(10)}, {"cycles:u", Counted(5)}}, 0) == "2.00 insn/cycle");
  CHECK(Text({{"instructions", UserOnly(10)}, {"cycles", Counted(5)}}, 0).empty());
  CHECK(Text({{"instructions", UserOnly(10)}, {"cycles", UserOnly(5)}}, 0) == "2.00 insn/cycle");
  // A clock has no mode: GHz of user cycles is of all CPU time, as perf has it.
  CHECK(Text({{"cycles:u", UserOnly(10)}, {"task-clock", Counted(5)}}, 0) == "2.00 GHz");
}

}  // namespace
}  // namespace perfkit
