// Asserting on cost with GoogleTest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "perfkit/testing.h"
#include "region.h"

using namespace perfkit;
using namespace perfkit::event;

TEST(LongName, AllocatesAndDoesNotFault) {
  const auto m = Measure({kAllocations, kPageFaults}, [] { return LongName(7); });
  EXPECT_THAT(m, Costs(UpTo(3), kAllocations) && !Never(kAllocations) && Never(kPageFaults));
}

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
