// A user's test program with Catch2, v2 or v3: what outcomes_checks.cc and the v3 test run, tag by tag.
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#else
#include <catch2/catch.hpp>
#endif

#include "perfkit/testing.h"
#include "tests/testing/samples.h"

using namespace perfkit;
using namespace perfkit::event;

TEST_CASE("passes", "[pass]") {
  CHECK_THAT(samples::Three(), Costs(3, kAllocations) && !Never(kAllocations));
  CHECK_THAT(Compare({kAllocations}, samples::AllocateThree, samples::AllocateThree), UsesUpTo(1, kAllocations));
  const auto linear = [](uint64_t n) {
    while (n-- > 0) std::free(samples::allocate(n + 1));
  };
  CHECK_THAT(Scaling({kAllocations}, linear, {10, 40, 160}), GrowsNoFasterThan(kN, kAllocations));
}

TEST_CASE("fails", "[fail]") { CHECK_THAT(samples::Three(), Costs(UpTo(2), kAllocations)); }

TEST_CASE("fails, and has zones", "[zones]") { CHECK_THAT(samples::Zoned(), Never(kAllocations)); }

TEST_CASE("fails by a required match", "[require]") { REQUIRE_THAT(samples::Three(), Never(kAllocations)); }

TEST_CASE("cannot be measured", "[unmeasurable]") {
  CHECK_THAT(samples::Never(), Costs(3, kAllocations) && Costs(UpTo(1'000'000), On("anywhere", kTaskClock)));
}

TEST_CASE("cannot be measured, and negated", "[unmeasurable]") {
  CHECK_THAT(samples::Never(), !Costs(UpTo(1), On("anywhere", kTaskClock)));
}

TEST_CASE("cannot be measured, and then fails", "[then fails]") {
  CHECK_THAT(samples::Never(), Costs(UpTo(1), On("anywhere", kTaskClock)));
  CHECK_THAT(samples::Three(), Never(kAllocations));
}

TEST_CASE("against a baseline", "[baseline]") { CHECK_THAT(samples::Three(), WithinBaseline("three", 0.5_percent)); }

TEST_CASE("grows too fast", "[growth]") {
  const auto square = [](uint64_t n) {
    for (uint64_t i = 0; i < n * n; ++i) std::free(samples::allocate(1));
  };
  CHECK_THAT(Scaling({kAllocations}, square, {10, 20, 40}), GrowsNoFasterThan(kN, kAllocations));
}
