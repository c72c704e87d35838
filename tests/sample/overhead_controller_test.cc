// OverheadController: the order and the size of reductions, when they are undone, and that the level does not
// oscillate.
#include "src/sample/overhead_controller.h"

#include <catch2/catch.hpp>
#include <vector>

namespace perfkit::sample {
namespace {

using What = SamplerDecision::What;
using Why = SamplerDecision::Why;

Window Costs(double cpus, uint64_t lost = 0) {
  return {.wall_ns = OverheadController::kWindowNs,
          .cpu_ns = static_cast<uint64_t>(cpus * static_cast<double>(OverheadController::kWindowNs)),
          .lost = lost};
}

TEST_CASE("stack bytes go first, then the stack, then samples, as far as the cost is over", "[overhead_controller]") {
  OverheadController controller(0.01, {.stack = 8192}, 512);
  const auto first = controller.Judge(Costs(0.02));
  REQUIRE(first.has_value());
  CHECK((first->what == What::kStackBytes && first->why == Why::kCost));
  CHECK((first->from == 8192 && first->to == 4096));
  CHECK(first->cost == Approx(0.02));
  CHECK(controller.Judge(Costs(0.5))->to == 512);  // 50 times over: as short as it goes
  const auto none = controller.Judge(Costs(0.011));
  CHECK((none->what == What::kStack && none->from == 512 && none->to == 0));
  CHECK(controller.Judge(Costs(0.011))->to == 2);
  const auto much = controller.Judge(Costs(0.3));
  CHECK((much->what == What::kSamples && much->from == 2 && much->to == 64));
  CHECK(controller.level() == SamplingLevel{0, 64});
  CHECK_FALSE(controller.Judge(Costs(0.009)));
}

TEST_CASE("it ends somewhere", "[overhead_controller]") {
  OverheadController controller(1e-6, {.stack = 127}, 8);
  int decisions = 0;
  while (controller.Judge(Costs(1)) && decisions < 100) ++decisions;
  CHECK(decisions < 10);
  CHECK(controller.level().slower == OverheadController::kSlowest);
}

TEST_CASE("without a budget nothing is ever given up", "[overhead_controller]") {
  OverheadController controller(0, {.stack = 8192}, 512);
  for (int i = 0; i < 10; ++i) CHECK_FALSE(controller.Judge(Costs(100, 1000)));
}

TEST_CASE("a thread that does not advance makes samples rarer for good, with a budget and without",
          "[overhead_controller]") {
  for (const double budget : {0.0, 0.01}) {
    CAPTURE(budget);
    OverheadController controller(budget, {.stack = 127}, 8);
    const SamplerDecision first = controller.LetAdvance();
    CHECK((first.what == What::kSamples && first.why == Why::kNoProgress && first.from == 1 && first.to == 8));
    CHECK(first.cost == 0);
    CHECK(controller.LetAdvance().to == 64);
    CHECK(controller.level() == SamplingLevel{127, 64});
    for (int i = 0; i < 1000; ++i) CHECK_FALSE(controller.Judge(Costs(0)));  // Headroom leads back to 64, not below.
    if (budget == 0) continue;
    while (controller.level().slower < 100) REQUIRE(controller.Judge(Costs(1)));
    while (controller.level() != SamplingLevel{127, 64}) (void)controller.Judge(Costs(0));
    for (int i = 0; i < 1000; ++i) CHECK_FALSE(controller.Judge(Costs(0)));
  }
}

TEST_CASE("a rate that could not be lowered for a thread that does not advance is lowered by the next decision",
          "[overhead_controller]") {
  OverheadController controller(0, {.stack = 127}, 8);
  controller.Refused(controller.LetAdvance());
  CHECK(controller.level() == SamplingLevel{127, 1});
  CHECK(controller.LetAdvance().to == 8);
  for (int i = 0; i < 40; ++i) (void)controller.LetAdvance();
  CHECK(controller.level().slower == OverheadController::kSlowest);
}

TEST_CASE("one loss is borne, one after the other is not", "[overhead_controller]") {
  OverheadController controller(1, {}, 512);
  CHECK_FALSE(controller.Judge(Costs(0.5, 10)));
  CHECK_FALSE(controller.Judge(Costs(0.5)));
  CHECK_FALSE(controller.Judge(Costs(0.5, 10)));
  const auto step = controller.Judge(Costs(0.5, 10));
  REQUIRE(step.has_value());
  CHECK((step->why == Why::kLoss && step->what == What::kSamples && step->to == 2));
}

TEST_CASE("what was given up last is taken back first, when there has been room for a while", "[overhead_controller]") {
  OverheadController controller(0.01, {.stack = 1024}, 512);
  for (int i = 0; i < 3; ++i) REQUIRE(controller.Judge(Costs(0.02)));  // 512, none, half of the samples
  CHECK(controller.level() == SamplingLevel{0, 2});
  std::vector<SamplerDecision> up;
  for (uint32_t i = 0; i < 3 * OverheadController::kFirstBackoff; ++i) {
    if (const auto step = controller.Judge(Costs(0.001))) up.push_back(*step);
  }
  REQUIRE(up.size() == 3);
  CHECK((up[0].what == What::kSamples && up[0].why == Why::kHeadroom && up[0].to == 1));
  CHECK((up[1].what == What::kStack && up[1].to == 512));
  CHECK((up[2].what == What::kStackBytes && up[2].to == 1024));
  CHECK_FALSE(controller.Judge(Costs(0.0)));
}

TEST_CASE("a little below the budget is no room, nor is a window that lost", "[overhead_controller]") {
  OverheadController controller(0.01, {}, 512);
  REQUIRE(controller.Judge(Costs(0.02)));
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(controller.Judge(Costs(0.005)));
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(controller.Judge(Costs(0.001, i % 2 == 0)));
}

// A load that is too expensive on the rung above: each attempt to climb waits longer than the one before.
TEST_CASE("a rung that had to be taken back is tried ever more seldom", "[overhead_controller]") {
  OverheadController controller(0.01, {}, 512);
  int climbs = 0, falls = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto step = controller.Judge(Costs(controller.level().slower == 1 ? 0.02 : 0.003));
    climbs += step && step->why == Why::kHeadroom;
    falls += step && step->why == Why::kCost;
  }
  CHECK(falls == climbs + 1);
  CHECK(climbs >= 4);
  CHECK(climbs <= 12);
}

TEST_CASE("what is refused is as it was, and the next rung is tried", "[overhead_controller]") {
  OverheadController controller(0.01, {.stack = 1024}, 512);
  const auto stack = controller.Judge(Costs(0.02));
  REQUIRE(stack.has_value());
  controller.Refused(*stack);
  CHECK(controller.level() == SamplingLevel{1024, 1});
  const auto samples = controller.Judge(Costs(0.02));
  REQUIRE(samples.has_value());
  CHECK(samples->what == What::kSamples);
  controller.Refused(*samples);
  CHECK(controller.level() == SamplingLevel{1024, 1});
}

}  // namespace
}  // namespace perfkit::sample
