// Tests which ids an index of writers knows, and what their samples represent, without a kernel's events.
#include "src/sample/writer_index.h"

#include <catch2/catch.hpp>

namespace perfkit::sample {
namespace {

constexpr SamplingLevel kLevel;

Plan PlanOf(RingMode mode) {
  SamplerOptions options;
  options.events = {{.event = "task-clock", .rate = Period{1'000'000}}};
  options.mode = mode;
  absl::StatusOr<Plan> plan = Plan::Make(options, Target::ThisThread());
  REQUIRE(plan.ok());
  return *std::move(plan);
}

void AddEvent(RingSet& set, uint64_t id) {
  RingEvent& event = set.events.emplace_back();
  event.id = id;
  event.event = 0;
  event.tid = 1;
}

TEST_CASE("the id of a replaced event stays known until its records are read", "[sample][writer_index]") {
  const Plan plan = PlanOf(RingMode::kStream);
  WriterIndex index(plan);
  RingSet before, after;
  AddEvent(before, 11);
  AddEvent(after, 22);
  index.Rebuild({&before}, kLevel, 0);
  REQUIRE(index.Find(11) != nullptr);
  CHECK_FALSE(index.Find(11)->retired);
  CHECK(index.Find(22) == nullptr);

  index.Retire(before.events[0], 100);
  index.Rebuild({&after}, kLevel, 100);
  REQUIRE(index.Find(11) != nullptr);
  CHECK(index.Find(11)->retired);
  CHECK(index.Find(22) != nullptr);
  index.ForgetRetired(100);
  index.Rebuild({&after}, kLevel, 100);
  CHECK(index.Find(11) != nullptr);  // Records up to its end were not read.
  index.ForgetRetired(101);
  index.Rebuild({&after}, kLevel, 100);
  CHECK(index.Find(11) == nullptr);
}

TEST_CASE("rings that overwrite keep few replaced ids", "[sample][writer_index]") {
  const Plan plan = PlanOf(RingMode::kOverwrite);
  WriterIndex index(plan);
  RingSet before;
  AddEvent(before, 11);
  index.Rebuild({&before}, kLevel, 0);
  index.Retire(before.events[0], 100);
  index.ForgetRetired(UINT64_MAX);
  index.Rebuild({}, kLevel, 100);
  CHECK(index.Find(11) != nullptr);
}

TEST_CASE("a new writer has the weights of the one before it", "[sample][writer_index]") {
  Plan plan = PlanOf(RingMode::kStream);
  WriterIndex index(plan);
  RingSet before, after;
  AddEvent(before, 11);
  AddEvent(after, 22);
  index.Rebuild({&before}, kLevel, 0);
  CHECK(index.WeightNow(before.events[0]) == 1'000'000);
  plan.SetRate(0, Period{2'000'000});
  CHECK(index.WeightNow(after.events[0]) == 0);
  index.Retire(before.events[0], 100);
  index.Rebuild({&after}, kLevel, 100);
  const Writer& writer = *index.Find(22);
  CHECK(index.WeightOf(writer, 50, false) == 1'000'000);
  CHECK(index.WeightOf(writer, 101, false) == 2'000'000);
  index.overlap() = {.from_ns = 40, .at_ns = 100, .to_ns = 140};
  CHECK(index.WeightOf(*index.Find(11), 110, false) == 2'000'000);  // The sample may be the new event's.
  CHECK(index.WeightOf(writer, 110, true) == 1'000'000);            // Of either: the smaller weight is safe.
  index.ForgetWeights(100);
  index.overlap() = {};
  CHECK(index.WeightOf(writer, 50, false) == 2'000'000);
}

}  // namespace
}  // namespace perfkit::sample
