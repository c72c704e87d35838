// Verdicts: three outcomes under all connectives, limits on every class, growth, ratios. On made-up measurements.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <limits>

#include "perfkit/testing.h"

namespace perfkit {
namespace {

using namespace event;

constexpr Outcome kP = Outcome::kPass, kF = Outcome::kFail, kU = Outcome::kUnmeasurable;

Cost Measured(const EventType& event, std::vector<int64_t> values) {
  Cost cost;
  cost.event = event;
  cost.event_class = ClassOf(event);
  cost.read_path = "made up";
  cost.values = std::move(values);
  return cost;
}

Cost Unmeasured(const EventType& event) {
  Cost cost = Measured(event, {});
  cost.unmeasurable = "no such luck";
  return cost;
}

// Sets an environment variable for a scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Environment() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST_CASE("three outcomes under and, or, not", "[verdict]") {
  const auto of = [](Outcome outcome) { return Verdict{outcome, "why"}; };
  struct Row {
    Outcome a, b, both, either;
  };
  // Kleene's strong logic of three values.
  for (const Row& row : {Row{kP, kP, kP, kP}, Row{kP, kF, kF, kP}, Row{kP, kU, kU, kP}, Row{kF, kF, kF, kF},
                         Row{kF, kU, kF, kU}, Row{kU, kU, kU, kU}}) {
    CHECK((of(row.a) && of(row.b)).outcome == row.both);
    CHECK((of(row.b) && of(row.a)).outcome == row.both);
    CHECK((of(row.a) || of(row.b)).outcome == row.either);
    CHECK((of(row.b) || of(row.a)).outcome == row.either);
  }
  CHECK((!of(kP)).outcome == kF);
  CHECK((!of(kF)).outcome == kP);
  CHECK((!of(kU)).outcome == kU);
}

TEST_CASE("what is required and unmeasurable stays required under every connective", "[verdict]") {
  const Verdict required{kU, "why", true}, pass{kP, ""};
  CHECK((!required).required);
  CHECK((required && pass).required);
  CHECK((!(pass && required)).required);
}

TEST_CASE("matchers combine as their verdicts do", "[verdict]") {
  const Measurement m{{Measured(kAllocations, {3, 3}), Unmeasured(kInstructions)}};
  CHECK((Costs(3, kAllocations) && Costs(UpTo(9), kInstructions)).Check(m).outcome == kU);
  CHECK((Costs(2, kAllocations) && Costs(UpTo(9), kInstructions)).Check(m).outcome == kF);
  CHECK((Costs(3, kAllocations) || Costs(UpTo(9), kInstructions)).Check(m).outcome == kP);
  CHECK((!Costs(UpTo(9), kInstructions)).Check(m).outcome == kU);
  CHECK((!Never(kAllocations)).Check(m).outcome == kP);
  CHECK((Costs(UpTo(3), kAllocations) && !Never(kAllocations)).toString() ==
        "\ncosts up to 3 allocations and not (costs exactly 0 allocations)");
}

TEST_CASE("numbers of clocks have their unit in each text", "[judge]") {
  const Environment here("PERFKIT_MACHINE", "here");
  const auto clock = On("here", kTaskClock);
  Measurement m{{Measured(kTaskClock, {2'000, 2'000, 2'500})}};
  m.costs[0].empty = 40;
  const std::string cost =
      "task-clock 2,000 ns (time, made up; least 2,000 ns, median 2,000 ns, most 2,500 ns of 3; 40 ns of an "
      "empty region subtracted)";
  CHECK(m.ToString() == cost);
  CHECK(JudgeCosts(m, UpTo(1'000), clock).why == "limit up to 1,000 ns: " + cost);
  CHECK_THAT(JudgeCosts(m, UpTo(2'200), clock).why,
             Catch::Matchers::Contains("too noisy to tell: the median lies in 2,000 ns to 2,500 ns"));
  CHECK(Costs(Limit(10, 20), clock).toString() == "\ncosts 10 ns to 20 ns task-clock on here");
  CHECK(Costs(4, kPageFaults).toString() == "\ncosts exactly 4 page-faults");
}

TEST_CASE("limits on exact events hold for each repetition", "[judge]") {
  const Measurement m{{Measured(kAllocations, {4, 5, 4})}};
  CHECK(JudgeCosts(m, UpTo(5), kAllocations).outcome == kP);
  CHECK(JudgeCosts(m, UpTo(4), kAllocations).outcome == kF);
  CHECK(JudgeCosts(m, 4, kAllocations).outcome == kF);
  CHECK(JudgeCosts(m, Limit(4, 5), kAllocations).outcome == kP);
  const Verdict fail = JudgeCosts(m, UpTo(4), kAllocations);
  CHECK(fail.why == "limit up to 4, and a repetition has 5: allocations 4 (exact, made up; least 4, median 4, most 5 of 3)");
}

TEST_CASE("of a near-exact event the least repetition counts", "[judge]") {
  const Measurement m{{Measured(kInstructions, {1300, 1200, 9000})}};
  CHECK(JudgeCosts(m, UpTo(1200), kInstructions).outcome == kP);
  CHECK(JudgeCosts(m, UpTo(1199), kInstructions).outcome == kF);
}

TEST_CASE("a noisy event has a limit on its machine only, and may be too noisy to tell", "[judge]") {
  std::vector<int64_t> values;
  for (int i = 0; i < 31; ++i) values.push_back(1000 + i);
  const Measurement m{{Measured(kCycles, values)}};
  const Environment here("PERFKIT_MACHINE", "build-7");
  CHECK(JudgeCosts(m, UpTo(1030), On("build-7", kCycles)).outcome == kP);
  CHECK(JudgeCosts(m, UpTo(1000), On("build-7", kCycles)).outcome == kF);
  CHECK(JudgeCosts(m, UpTo(1015), On("build-7", kCycles)).outcome == kU);
  const Verdict elsewhere = JudgeCosts(m, UpTo(1030), On("laptop", kCycles));
  CHECK(elsewhere.outcome == kU);
  CHECK(elsewhere.why == "cycles: the limit holds on machine laptop, and this is build-7");
}

TEST_CASE("an event that was not asked for is a mistake, not a skip", "[judge]") {
  CHECK(JudgeCosts({}, UpTo(1), kAllocations).outcome == kF);
  CHECK(JudgeUses({}, 1, kAllocations).outcome == kF);
  CHECK(JudgeGrowth({{1, 8}, {{}, {}}}, kN, kAllocations).outcome == kF);
}

TEST_CASE("PERFKIT_REQUIRE makes unmeasurable a failure, by event or for all", "[judge]") {
  const Measurement m{{Unmeasured(kInstructions)}};
  const auto required = [&](const char* value) {
    const Environment environment("PERFKIT_REQUIRE", value);
    return JudgeCosts(m, UpTo(1), kInstructions).required;
  };
  CHECK(required("all"));
  CHECK(required("instructions"));
  CHECK(required("cycles,instructions"));
  CHECK(required("instructions,cycles"));
  CHECK(required("cycles, instructions "));
  CHECK_FALSE(required("cycles"));
  CHECK_FALSE(required(""));
  CHECK_FALSE(required(" , ,"));
  CHECK_FALSE(required("ref-cycles"));
  for (const char* misprint : {"instruction", "Instructions", "cycles,instructionss", "All", "al"}) {
    CHECK(required(misprint));
  }
  CHECK_FALSE(JudgeCosts(m, UpTo(1), kInstructions).required);
}

TEST_CASE("a word in PERFKIT_REQUIRE that names no event fails what is unmeasurable, and only that", "[judge]") {
  const Measurement m{{Unmeasured(kInstructions), Measured(kAllocations, {3})}};
  const auto judge = [&](const std::string& value) {
    const Environment environment("PERFKIT_REQUIRE", value.c_str());
    CHECK(JudgeCosts(m, 3, kAllocations).outcome == kP);
    return JudgeCosts(m, UpTo(1), kInstructions);
  };
  for (const std::string word :
       {"instructions cycles", "instructions;cycles", "cycles:u", "cycles:", "ref-instructions", "Instructiond",
        "cylces", "everything", "1", "instructions/cycles"}) {
    INFO(word);
    for (const std::string& list : {word, "cycles," + word, word + ",cycles"}) {
      const Verdict verdict = judge(list);
      CHECK(verdict.required);
      CHECK(verdict.why.find("PERFKIT_REQUIRE has \"" + word + "\"") != std::string::npos);
      CHECK(verdict.why.find("Remedy: ") != std::string::npos);
    }
  }
  // Names and aliases of other events, also of such as this machine lacks.
  for (const char* word : {"cycles", "cpu-cycles", "cs", "l1d-read-miss", "system-calls", "calls", "allocations",
                           "r01c0", "rchar", "raw_syscalls:sys_enter"}) {
    INFO(word);
    CHECK_FALSE(judge(word).required);
  }
}

TEST_CASE("an alias in PERFKIT_REQUIRE is its event", "[judge]") {
  const auto required = [](const EventType& event, const char* value) {
    const Environment environment("PERFKIT_REQUIRE", value);
    const Measurement m{{Unmeasured(event)}};
    return JudgeUses({m, m}, 1, event).required;
  };
  CHECK(required(kCycles, "cpu-cycles"));
  CHECK(required(kPageFaults, "faults"));
  CHECK(required(kContextSwitches, "task-clock,cs"));
  CHECK(required(kBranches, "branch-instructions"));
  CHECK(required(kL1DcacheLoadMisses, "l1d-read-miss"));
  CHECK_FALSE(required(kCycles, "faults"));
  CHECK_FALSE(required(kRefCycles, "cpu-cycles"));
}

TEST_CASE("a metric that PERFKIT_REQUIRE names is required, whatever it lacks", "[metric]") {
  const Measurement m{{Unmeasured(kInstructions), Measured(kAllocations, {3})}};
  const auto required = [&](const char* value) {
    const Environment environment("PERFKIT_REQUIRE", value);
    return JudgeMetric(m, "mine = instructions / allocations", {0, 1}).required;
  };
  CHECK(required("mine"));
  CHECK(required("instructions"));
  CHECK_FALSE(required("allocations"));  // which was measured
}

TEST_CASE("ratios of steady events are numbers, of noisy ones intervals over pairs", "[judge]") {
  const Comparison exact{{{Measured(kAllocations, {9, 9})}}, {{Measured(kAllocations, {10, 10})}}};
  CHECK(JudgeUses(exact, 0.9, kAllocations).outcome == kP);
  CHECK(JudgeUses(exact, 0.89, kAllocations).outcome == kF);
  // Exact numbers that differ are no noise: a ratio of 0.9 to 1.1 breaks the limit of 1.
  const Comparison straddling{{{Measured(kAllocations, {9, 11})}}, {{Measured(kAllocations, {10, 10})}}};
  CHECK(JudgeUses(straddling, 1, kAllocations).outcome == kF);
  // A slow drift hits both of a pair: the ratio does not care.
  Comparison noisy{{{Measured(kCycles, {})}}, {{Measured(kCycles, {})}}};
  for (int i = 0; i < 31; ++i) {
    noisy.subject.costs[0].values.push_back((1000 + 50 * i) * 8 / 10);
    noisy.reference.costs[0].values.push_back(1000 + 50 * i);
  }
  CHECK(JudgeUses(noisy, 0.81, kCycles).outcome == kP);
  CHECK(JudgeUses(noisy, 0.7, kCycles).outcome == kF);
  noisy.subject.costs[0].values[3] = 100'000;  // one outlier decides nothing
  CHECK(JudgeUses(noisy, 0.81, kCycles).outcome == kP);
  for (int i = 0; i < 31; i += 2) noisy.subject.costs[0].values[static_cast<size_t>(i)] *= 2;
  CHECK(JudgeUses(noisy, 1, kCycles).outcome == kU);
}

TEST_CASE("a reference that costs nothing", "[judge]") {
  const Comparison nothing{{{Measured(kAllocations, {0})}}, {{Measured(kAllocations, {0})}}};
  CHECK(JudgeUses(nothing, 0.9, kAllocations).outcome == kP);
  const Comparison something{{{Measured(kAllocations, {1})}}, {{Measured(kAllocations, {0})}}};
  CHECK(JudgeUses(something, 100, kAllocations).outcome == kF);
  const Comparison noisy{{{Measured(kCycles, {1})}}, {{Measured(kCycles, {0})}}};
  CHECK(JudgeUses(noisy, 1, kCycles).outcome == kU);
}

TEST_CASE("a factor is 0 or more, and may be infinite", "[judge]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const EventType& event : {kAllocations, kCycles}) {
    for (const int64_t reference : {0, 10}) {
      const Comparison c{{{Measured(event, {5})}}, {{Measured(event, {reference})}}};
      CHECK(JudgeUses(c, kInfinity, event).outcome == kP);
      for (const double factor : {std::numeric_limits<double>::quiet_NaN(), -0.5}) {
        const Verdict verdict = JudgeUses(c, factor, event);
        CHECK(verdict.outcome == kF);
        CHECK(verdict.why.find(factor < 0 ? "-0.5" : "nan") != std::string::npos);
      }
    }
  }
  CHECK(JudgeUses({{{Measured(kAllocations, {0})}}, {{Measured(kAllocations, {10})}}}, 0, kAllocations).outcome == kP);
}

TEST_CASE("a limit on a noisy event without a machine fails, however it was written", "[judge]") {
  const Environment here("PERFKIT_MACHINE", "");
  const Measurement m{{Measured(kTaskClock, {5, 5}), Measured(kAllocations, {3}), Unmeasured(kCycles)}};
  for (const Verdict& verdict : {JudgeCosts(m, UpTo(9), On("", kTaskClock)), JudgeCosts(m, UpTo(9), On("", kCycles)),
                                 Costs(UpTo(9), On("", kTaskClock)).Check(m)}) {
    CHECK(verdict.outcome == kF);
    CHECK(verdict.why.find("name the machine for which the limit holds") != std::string::npos);
  }
  CHECK(JudgeCosts(m, 3, On("", kAllocations)).outcome == kP);
}

// Costs of `cost(n)` at 2^10, 2^12, 2^14.
template <class Fn>
ScalingResult Grown(Fn cost) {
  ScalingResult result;
  for (const uint64_t n : {1 << 10, 1 << 12, 1 << 14}) {
    result.sizes.push_back(n);
    result.at.push_back({{Measured(kInstructions, {static_cast<int64_t>(cost(static_cast<double>(n)))})}});
  }
  return result;
}

TEST_CASE("growth is told from the next faster one", "[judge]") {
  const auto judge = [](auto cost, Growth growth) { return JudgeGrowth(Grown(cost), growth, kInstructions).outcome; };
  const auto log = [](double n) { return 20 + 10 * std::log2(n); };
  const auto linear = [](double n) { return 500 + 3 * n; };
  const auto sort = [](double n) { return n * std::log2(n) - 1.25 * n; };
  const auto square = [](double n) { return n * n / 2 + n; };
  CHECK(judge([](double) { return 77; }, kConstant) == kP);
  CHECK(judge(log, kLogN) == kP);
  CHECK(judge(log, kConstant) == kF);
  CHECK(judge(linear, kN) == kP);
  CHECK(judge(linear, kLogN) == kF);
  CHECK(judge(sort, kNLogN) == kP);
  CHECK(judge(sort, kN) == kF);
  CHECK(judge(square, kN2) == kP);
  CHECK(judge(square, kNLogN) == kF);
  CHECK(judge([](double n) { return n * n * n / 100; }, kN3) == kP);
  CHECK(judge([](double n) { return n * n * n / 100; }, kN2) == kF);
}

TEST_CASE("sizes that lie too close together are a mistake", "[judge]") {
  ScalingResult result = Grown([](double n) { return n; });
  result.sizes = {100, 101, 102};
  CHECK(JudgeGrowth(result, kN, kInstructions).outcome == kF);
  CHECK(JudgeGrowth({}, kN, kInstructions).outcome == kF);
}

ScalingResult Scaled(std::vector<uint64_t> sizes, const std::vector<int64_t>& costs) {
  ScalingResult result{std::move(sizes), {}};
  for (const int64_t cost : costs) result.at.push_back({{Measured(kInstructions, {cost})}});
  return result;
}

TEST_CASE("size 0 is a mistake", "[judge]") {
  const Verdict verdict = JudgeGrowth(Scaled({0, 4, 16, 64}, {9, 1210, 4810, 19210}), kN, kInstructions);
  CHECK(verdict.outcome == kF);
  CHECK(verdict.why.find("size 0") != std::string::npos);
  CHECK(verdict.why.find("n^") == std::string::npos);
  CHECK(JudgeGrowth(Scaled({4, 16, 64}, {1210, 4810, 19210}), kN, kInstructions).outcome == kP);
  ScalingResult unmeasured{{0, 4}, {{{Unmeasured(kInstructions)}}, {{Unmeasured(kInstructions)}}}};
  CHECK(JudgeGrowth(unmeasured, kN, kInstructions).outcome == kF);
}

TEST_CASE("growth from a cost of 0 has no exponent", "[judge]") {
  const std::vector<uint64_t> sizes = {4, 16, 64, 256};
  for (const std::vector<int64_t>& costs :
       {std::vector<int64_t>{0, 0, 1, 1}, {1, 0, 1, 1}, {0, 1, 1, 0}, {-3, 1, 1, 1}}) {
    for (const Growth growth : {kConstant, kLogN, kN, kN3}) {
      const Verdict verdict = JudgeGrowth(Scaled(sizes, costs), growth, kInstructions);
      CHECK(verdict.outcome == kU);
      CHECK(verdict.why.find("instructions: costs 0 or less at n = ") == 0);
    }
  }
  const Verdict verdict = JudgeGrowth(Scaled(sizes, {0, 0, 1, 1}), kConstant, kInstructions);
  CHECK(verdict.why.find("costs 0 or less at n = 4, 16 ") != std::string::npos);
  // What grows too fast even if 0 counts as 1 fails.
  CHECK(JudgeGrowth(Scaled(sizes, {0, 0, 3, 48}), kConstant, kInstructions).outcome == kF);
  CHECK(JudgeGrowth(Scaled(sizes, {0, 60, 900, 15000}), kN, kInstructions).outcome == kF);
  CHECK(JudgeGrowth(Scaled(sizes, {0, 0, 0, 0}), kConstant, kInstructions).outcome == kP);
}

Measurement Made(std::vector<Cost> costs) { return {std::move(costs), ""}; }

TEST_CASE("metrics of exact events pass and fail by their bounds", "[metric]") {
  const Measurement m = Made({Measured(kAllocations, {6, 6, 6}), Measured(kPageFaults, {2, 3, 3})});
  const auto judge = [&](const char* text, double low, double high) {
    return JudgeMetric(m, text, {low, high}).outcome;
  };
  CHECK(judge("allocations / 3", 2, 2) == kP);
  CHECK(judge("allocations / 3", 0, 1.9) == kF);
  CHECK(judge("allocations / page-faults", 2, 3) == kP);
  CHECK(judge("allocations / page-faults", 0, 2.9) == kF);  // one repetition is outside, as with Costs
  CHECK(judge("allocations / page-faults", 3.1, 9) == kF);
  CHECK(judge("1 / (allocations - 6)", 0, 9) == kU);
  CHECK(MetricUpTo(3, "allocations / page-faults").Check(m).outcome == kP);
  CHECK(MetricAtLeast(3, "allocations / page-faults").Check(m).outcome == kF);
  CHECK(MetricIn({2, 3}, "a = allocations / page-faults [x]").Check(m).outcome == kP);
  const Verdict told = JudgeMetric(m, "a = allocations / 3 [x]", {0, 1});
  CHECK(told.why == "limit 0 to 1: a = 2.00 x; " + m.costs[0].ToString());
}

TEST_CASE("metrics of noisy events need a machine, and are unmeasurable in their noise", "[metric]") {
  const Measurement m = Made({Measured(kCycles, std::vector<int64_t>(31, 200)), Measured(kInstructions, {100, 101})});
  const Environment here("PERFKIT_MACHINE", "build-7");
  const Verdict bare = JudgeMetric(m, "instructions / cycles", {0, 1});
  CHECK(bare.outcome == kF);
  CHECK(bare.why.find("cycles is noisy or a clock: name the machine") != std::string::npos);
  CHECK(JudgeMetric(m, "instructions / cycles", {0, 1}, "build-7").outcome == kP);
  CHECK(JudgeMetric(m, "instructions / cycles", {0, 0.1}, "build-7").outcome == kF);
  CHECK(JudgeMetric(m, "instructions / cycles", {0, 1}, "other").outcome == kU);
  const Measurement without_pmu = Made({Unmeasured(kCycles), Measured(kInstructions, {100, 101})});
  CHECK(JudgeMetric(without_pmu, "instructions / cycles", {0, 1}).outcome == kF);
  CHECK(JudgeMetric(without_pmu, "instructions / cycles", {0, 1}, "build-7").outcome == kU);
  Measurement noisy = m;
  for (size_t i = 0; i < 31; ++i) noisy.costs[0].values[i] = static_cast<int64_t>(100 + 10 * i);
  CHECK(JudgeMetric(noisy, "instructions / cycles", {0, 0.4}, "build-7").outcome == kU);
  CHECK_FALSE(JudgeMetric(noisy, "instructions / cycles", {0, 0.4}, "build-7").required);
  for (const char* const name : {"cycles", "instructions / cycles", "all"}) {
    const Environment require("PERFKIT_REQUIRE", name);
    CHECK(JudgeMetric(noisy, "instructions / cycles", {0, 0.4}, "build-7").required);
    CHECK(JudgeMetric(m, "instructions / cycles", {0, 1}, "other").required);
  }
}

TEST_CASE("a metric of counts with and without the kernel is no number", "[metric]") {
  Measurement m = Made({Measured(kPageFaults, {6, 6}), Measured(kInstructions, {1000, 1000})});
  CHECK(JudgeMetric(m, "instructions / page-faults", {0, 1e9}).outcome == kP);
  m.costs[1].user_only = true;
  const Verdict verdict = JudgeMetric(m, "instructions / page-faults", {0, 1e9});
  CHECK(verdict.outcome == kU);
  CHECK(verdict.why.find("user space only") != std::string::npos);
}

TEST_CASE("metrics that cannot be told never pass", "[metric]") {
  const Measurement m = Made({Measured(kAllocations, {6}), Unmeasured(kInstructions)});
  const auto judge = [&](const char* text) { return JudgeMetric(m, text, {-1e9, 1e9}); };
  CHECK(judge("allocations / page-faults").outcome == kF);
  CHECK(judge("allocations / page-faults").why.find("page-faults was not measured: add it") != std::string::npos);
  CHECK(judge("instructions / allocations").outcome == kU);
  CHECK(judge("instructions / allocations").why == "instructions: no such luck");
  CHECK(judge("allocations / (2").outcome == kF);
  CHECK(judge("allocations / seconds").outcome == kF);
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  CHECK(JudgeMetric(m, "allocations", {kNan, 9}).outcome == kF);
  CHECK(JudgeMetric(m, "instructions", {0, kNan}).outcome == kF);
  const Environment require("PERFKIT_REQUIRE", "instructions");
  CHECK(judge("instructions / allocations").required);
}

}  // namespace
}  // namespace perfkit
