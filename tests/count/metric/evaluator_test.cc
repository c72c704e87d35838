// The values of metrics: what they are worth, and why there is none.
#include "src/count/metric/evaluator.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "src/count/metric/parser.h"

namespace perfkit {
namespace {

using Counts = std::vector<NamedCount>;

constexpr uint64_t kSecond = 1'000'000'000;

Count Plain(uint64_t value, uint8_t flags = 0) { return {value, 0, 0, {flags}}; }

MetricValue Value(std::string_view text, const Counts& counts, uint64_t wall_ns = 0) {
  return count::ParseOwnMetric(text).Evaluate(counts, wall_ns);
}

double NumberOf(std::string_view text, const Counts& counts = {}, uint64_t wall_ns = 0) {
  Counts all = counts;
  all.push_back({"zero", Plain(0)});
  const MetricValue value = Value(std::string(text) + " + zero", all, wall_ns);
  INFO(std::string(text) << ": " << value.reason);
  CHECK(value.has_value());
  return value.value;
}

TEST_CASE("metric: arithmetic is that of schools", "[metric]") {
  CHECK(NumberOf("1 + 2 * 3 - 4 / 8") == 6.5);
  CHECK(NumberOf("8 / 4 / 2") == 1);
  CHECK(NumberOf("8 - 4 - 2") == 2);
  CHECK(NumberOf("(1 + 2) * (3 - (4 - 2))") == 3);
  CHECK(NumberOf("2.5e3 * .5") == 1250);
  CHECK(NumberOf("a * (b - a)", {{"a", Plain(3)}, {"b", Plain(10)}}) == 21);
  CHECK(NumberOf("seconds * 2", {}, 3 * kSecond) == 6);
  CHECK(NumberOf("duration_time", {}, 3 * kSecond) == 3e9);
}

TEST_CASE("metric: counts are in their events' units", "[metric]") {
  const Counts counts = {{"power/energy-pkg/", Plain(100), 0.25}, {"task-clock", Plain(2'000'000)}};
  CHECK(NumberOf("power/energy-pkg/ / seconds", counts, 5 * kSecond) == 5);
  CHECK(NumberOf("task-clock / 1e6", counts) == 2);
}

TEST_CASE("metric: a part that was not counted is told, and is never 0", "[metric]") {
  const Counts counts = {
      {"a", Plain(4)}, {"b", Count{}, 1, "no PMU"}, {"c", Count{}}, {"d", Plain(0, Validity::kOtherThread)}};
  const std::vector<std::pair<std::string, std::string>> reasons = {
      {"a + b", "b: no PMU"},
      {"0 * b + a", "b: no PMU"},
      {"a / c", "c: not counted"},
      {"a / d", "d: was read on another thread than it counts (ThreadSlots counts each)"},
      {"a / e", "e: not among the counted events"}};
  for (const auto& [text, reason] : reasons) {
    const MetricValue value = Value(text, counts);
    INFO(text);
    CHECK_FALSE(value.has_value());
    CHECK_FALSE(value.validity.counted());
    CHECK(value.reason == reason);
  }
  const Counts starved = {{"a", {0, 100, 0, {Validity::kMultiplexed}}}};
  CHECK(Value("a + 1", starved).reason == "a: never was on a counter");
}

TEST_CASE("metric: a division by 0 has no value", "[metric]") {
  const Counts counts = {{"a", Plain(4)}, {"b", Plain(0)}};
  for (const char* text : {"a / b", "b / b", "1 / (a - 4)", "a / (b * 2) + 1"}) {
    INFO(text);
    CHECK(Value(text, counts).reason == "division by 0");
  }
  CHECK(Value("b / a", counts).value == 0);
  CHECK(Value("a * 1e308 * 1e308", counts).reason == "out of the range of numbers");
}

TEST_CASE("metric: rates need the elapsed time", "[metric]") {
  constexpr char kUnknown[] = "the elapsed time is not known: pass wall_ns, or divide by task-clock";
  CHECK(Value("a / seconds", {{"a", Plain(4)}}).reason == kUnknown);
  CHECK(Value("a / duration_time", {{"a", Plain(4)}}).reason == kUnknown);
  CHECK(Value("a / seconds", {{"a", Plain(4)}}, 2 * kSecond).value == 2);
}

TEST_CASE("metric: the weakest part decides what the value is worth", "[metric]") {
  const Counts counts = {{"a", {500, 1000, 500, {Validity::kMultiplexed}}},
                         {"b", {250, 1000, 250, {Validity::kMultiplexed}}},
                         {"c", Plain(10, Validity::kFallback)}};
  const MetricValue value = Value("a / b + 0 * c [x]", counts);
  REQUIRE(value.has_value());
  CHECK(value.value == Approx(1.0));
  CHECK(value.coverage == Approx(0.25));
  CHECK(value.validity == Validity{Validity::kMultiplexed | Validity::kFallback});
  CHECK(value.unit == "x");
  CHECK(value.below == 0);
  CHECK(value.above == 0);
}

TEST_CASE("metric: events are found by any of their names", "[metric]") {
  const Counts counts = {{"cpu-cycles:u", Plain(5)}, {"cycles", Plain(10)}, {"l1d-read-miss", Plain(20)}};
  CHECK(Value("cpu-cycles", counts).value == 10);
  CHECK(Value("cycles:u", counts).value == 5);
  CHECK(Value("L1-dcache-load-misses", counts).value == 20);
  CHECK(Value("cycles:k", counts).reason == "cycles:k: not among the counted events");
}

TEST_CASE("metric: user space only and all are not mixed, unless they were written so", "[metric]") {
  const Counts counts = {{"instructions", Plain(10, Validity::kUserOnly)},
                         {"cycles", Plain(5)},
                         {"cycles:u", Plain(4, Validity::kUserOnly)},
                         {"task-clock", Plain(2)},
                         {"context-switches", Plain(1)},
                         {"allocations", Plain(2)},
                         {"r01c0", Plain(3)},
                         {"cpu/event=1/", Plain(3)}};
  CHECK(Value("instructions / cycles", counts).reason == "instructions is of user space only, and cycles is not");
  CHECK(Value("instructions / r01c0", counts).reason == "instructions is of user space only, and r01c0 is not");
  CHECK(Value("instructions / cpu/event=1/", counts).reason ==
        "instructions is of user space only, and cpu/event=1/ is not");
  CHECK(Value("cycles:u / cycles", counts).value == Approx(0.8));
  CHECK(Value("instructions / task-clock", counts).value == 5);
  CHECK(Value("instructions / context-switches", counts).value == 10);
  CHECK(Value("instructions / allocations", counts).value == 5);
  CHECK(Value("instructions / task-clock", counts).validity.has(Validity::kUserOnly));
}

TEST_CASE("metric: bounds of parts become bounds of the value", "[metric]") {
  const auto part = [](std::string_view name, double value, double low, double high) {
    MetricPart made;
    made.name = name;
    made.value = value;
    made.below = value - low;
    made.above = high - value;
    return made;
  };
  const std::vector<MetricPart> parts = {part("a", 10, 8, 12), part("b", 4, 2, 5), part("c", 1, -1, 2)};
  const auto bounds = [&](std::string_view text) {
    const MetricValue value = count::ParseOwnMetric(text).Evaluate(parts);
    return std::vector<double>{value.value - value.below, value.value, value.value + value.above};
  };
  CHECK(bounds("a + b") == std::vector<double>{10, 14, 17});
  CHECK(bounds("a - b") == std::vector<double>{3, 6, 10});
  CHECK(bounds("a * c") == std::vector<double>{-12, 10, 24});
  CHECK(bounds("a / b") == std::vector<double>{1.6, 2.5, 6});
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(bounds("a / c") == std::vector<double>{-infinity, 10, infinity});
  CHECK(bounds("a / c * c") == std::vector<double>{-infinity, 10, infinity});
  CHECK(bounds("b / (a / c)") == std::vector<double>{-infinity, 0.4, infinity});
  CHECK(bounds("(a / c) * (a - a)") == std::vector<double>{-infinity, 0, infinity});
}

}  // namespace
}  // namespace perfkit
