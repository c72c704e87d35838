// The length of a tick as it is measured where the kernel does not tell it, against the clock on the wall.
#include "src/count/tick_rate.h"

#include <time.h>

#include <catch2/catch.hpp>

#include "tests/support/measurement.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::count {
namespace {

// A reading of the tick counter, and of the clock before and after it.
struct Bracket {
  uint64_t before_ns, ticks, after_ns;
};

// The one of many that was interrupted least.
Bracket TakeBracket() {
  Bracket best{0, 0, ~uint64_t{0}};
  for (int i = 0; i < 200; ++i) {
    const uint64_t before_ns = testing::NowNs(CLOCK_MONOTONIC_RAW);
    const uint64_t ticks = ReadTicks();
    const uint64_t after_ns = testing::NowNs(CLOCK_MONOTONIC_RAW);
    if (after_ns - before_ns < best.after_ns - best.before_ns) best = {before_ns, ticks, after_ns};
  }
  return best;
}

TEST_CASE("tick rate: what is measured without a page agrees with the raw clock over 50 ms", "[measurement]") {
  if (TickRateOf(UserPage{}).ns_per_tick_q32 == 0) SKIP_TEST("no tick counter here");
  CHECK(testing::HoldsOnceInThree([] {
    const TickRate rate = TickRateOf(UserPage{});
    const Bracket begin = TakeBracket();
    testing::Sleep(50'000'000);
    const Bracket end = TakeBracket();
    const double ns =
        static_cast<double>(end.ticks - begin.ticks) * static_cast<double>(rate.ns_per_tick_q32) * 0x1p-32;
    const auto least = static_cast<double>(end.before_ns - begin.after_ns);
    const auto most = static_cast<double>(end.after_ns - begin.before_ns);
    UNSCOPED_INFO(ns << " ns by ticks, " << least << " to " << most << " by the raw clock");
    // Measured over 10 ms, the rate is off by some parts in a million.
    return ns >= 0.9999 * least && ns <= 1.0001 * most;
  }));
}

}  // namespace
}  // namespace perfkit::count
