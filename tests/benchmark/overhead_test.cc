// The loop's own part: measured by the counters themselves, never more than what was counted.
#include "src/benchmark/adapter/overhead.h"

#include <catch2/catch.hpp>

#include "tests/support/measurement.h"
#include "tests/support/work.h"

namespace perfkit::adapter {
namespace {

TEST_CASE("segments and rounds are taken off, down to 0") {
  Overhead overhead;
  overhead.per_segment[1] = 10;
  overhead.per_round[1] = 2;
  CHECK(overhead.Without(1000, 1, 3, 100) == 1000 - 30 - 200);
  CHECK(overhead.Without(100, 1, 3, 100) == 0);
  CHECK(overhead.Without(100, 0, 3, 100) == 100);
}

TEST_CASE("events that a loop does not cause cost nothing") {
  absl::StatusOr<CounterSet> set = CounterSet::Open({"page-faults", "context-switches"});
  REQUIRE(set.ok());
  const Overhead overhead = MeasureOverhead(*set);
  for (const size_t i : {0, 1}) {
    CHECK(overhead.per_segment[i] == 0);
    CHECK(overhead.per_round[i] == 0);
  }
}

TEST_CASE("time costs something, but little, by any path", "[measurement]") {
  for (const ReadPath path : {ReadPath::kThreadClock, ReadPath::kGroupRead}) {
    absl::StatusOr<CounterSet> set =
        CounterSet::Open({"task-clock"}, Target::ThisThread(), {.require_all = false, .only_path = path});
    REQUIRE(set.ok());
    if (!set->reason(0).ok()) continue;
    CHECK(testing::HoldsOnceInThree([&] {
      const Overhead overhead = MeasureOverhead(*set);
      return overhead.per_round[0] > 0 && overhead.per_round[0] < 100;
    }));
  }
}

TEST_CASE("a loop that its user's compiler made dear costs more", "[measurement]") {
  absl::StatusOr<CounterSet> set = CounterSet::Open({"task-clock"});
  REQUIRE(set.ok());
  CHECK(testing::HoldsOnceInThree([&] {
    const Overhead ours = MeasureOverhead(*set);
    const Overhead dear =
        MeasureOverhead(*set, [](int64_t rounds) { testing::Spin(16 * static_cast<uint64_t>(rounds)); });
    return dear.per_round[0] > 4 * ours.per_round[0];
  }));
}

TEST_CASE("what is not counted has no overhead") {
  absl::StatusOr<CounterSet> set =
      CounterSet::Open({EventType{0xdead, 0, 0, 0, "no such unit"}}, Target::ThisThread(), {.require_all = false});
  REQUIRE(set.ok());
  CHECK(MeasureOverhead(*set).per_round[0] == 0);
}

}  // namespace
}  // namespace perfkit::adapter
