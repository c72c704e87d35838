// Clocks of records, in a time namespace too.
#include "src/sys/clock.h"

#include <catch2/catch.hpp>

namespace perfkit::sys {
namespace {

TEST_CASE("offsets are read as the kernel writes them", "[clock]") {
  const ClockOffsets both =
      ParseClockOffsets("monotonic           86400         5\nboottime            -7200         0\n");
  CHECK(both.monotonic_ns == 86'400'000'000'005);
  CHECK(both.boottime_ns == uint64_t{0} - 7'200'000'000'000);
  // -300 s and 1 ns.
  CHECK(ParseClockOffsets("monotonic -301 999999999").monotonic_ns + 300'000'000'001 == 0);
  for (const char* const text : {"", "\n\n", "monotonic", "monotonic 1", "monotonic x 0", "realtime 5 5\n"}) {
    CHECK(ParseClockOffsets(text).monotonic_ns == 0);
    CHECK(ParseClockOffsets(text).boottime_ns == 0);
  }
}

TEST_CASE("clocks without an offset are as the process sees them", "[clock][law]") {
  for (const clockid_t clock : {CLOCK_REALTIME, CLOCK_THREAD_CPUTIME_ID, CLOCK_TAI}) CHECK(ClockOffsetNs(clock) == 0);
  const uint64_t before_ns = OwnClockNs(CLOCK_MONOTONIC);
  const uint64_t now_ns = ClockNs(CLOCK_MONOTONIC) + ClockOffsetNs(CLOCK_MONOTONIC);
  CHECK((before_ns <= now_ns && now_ns <= OwnClockNs(CLOCK_MONOTONIC)));
}

}  // namespace
}  // namespace perfkit::sys
