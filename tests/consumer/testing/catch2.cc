// Asserting on cost with Catch2, version 2 or 3.
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#else
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif

#include "perfkit/testing.h"
#include "region.h"

using namespace perfkit;
using namespace perfkit::event;

TEST_CASE("a long name allocates, a page fault it is not") {
  const auto m = Measure({kAllocations, kPageFaults}, [] { return LongName(7); });
  CHECK_THAT(m, Costs(UpTo(3), kAllocations) && !Never(kAllocations) && Never(kPageFaults));
}
