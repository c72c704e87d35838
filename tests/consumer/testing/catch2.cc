// Asserting on cost with Catch2.
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>

#include "perfkit/testing.h"
#include "region.h"

using namespace perfkit;
using namespace perfkit::event;

TEST_CASE("a long name allocates, a page fault it is not") {
  const auto m = Measure({kAllocations, kPageFaults}, [] { return LongName(7); });
  CHECK_THAT(m, Costs(UpTo(3), kAllocations) && !Never(kAllocations) && Never(kPageFaults));
}
