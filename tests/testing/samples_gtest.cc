// A user's test program with GoogleTest: what outcomes_checks.cc runs, name by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perfkit/testing.h"
#include "tests/testing/samples.h"

using namespace perfkit;
using namespace perfkit::event;

TEST(Samples, Passes) {
  EXPECT_THAT(samples::Three(), Costs(3, kAllocations) && !Never(kAllocations));
  EXPECT_THAT(Compare({kAllocations}, samples::AllocateThree, samples::AllocateThree), UsesUpTo(1, kAllocations));
  const auto linear = [](uint64_t n) {
    while (n-- > 0) std::free(samples::allocate(n + 1));
  };
  EXPECT_THAT(Scaling({kAllocations}, linear, {10, 40, 160}), GrowsNoFasterThan(kN, kAllocations));
}

TEST(Samples, Fails) { EXPECT_THAT(samples::Three(), Costs(UpTo(2), kAllocations)); }

TEST(Samples, FailsAndHasZones) { EXPECT_THAT(samples::Zoned(), Never(kAllocations)); }

TEST(Samples, FailsByAnAssertion) { ASSERT_THAT(samples::Three(), Never(kAllocations)); }

TEST(Samples, Unmeasurable) {
  EXPECT_THAT(samples::Never(), Costs(3, kAllocations) && Costs(UpTo(1'000'000), On("anywhere", kTaskClock)));
}

TEST(Samples, UnmeasurableAndNegated) { EXPECT_THAT(samples::Never(), !Costs(UpTo(1), On("anywhere", kTaskClock))); }

TEST(Samples, UnmeasurableThenFails) {
  EXPECT_THAT(samples::Never(), Costs(UpTo(1), On("anywhere", kTaskClock)));
  EXPECT_THAT(samples::Three(), Never(kAllocations));
}

TEST(Samples, Baseline) { EXPECT_THAT(samples::Three(), WithinBaseline("three", 0.5_percent)); }

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
