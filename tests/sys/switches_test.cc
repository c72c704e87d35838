// Leaving the CPU, with sleeps that are over before they begin: what a steal of the CPU's time at the wrong moment
// does.
#include "src/sys/switches.h"

#include <errno.h>

#include <catch2/catch.hpp>

#include "tests/support/lying_kernel.h"
#include "tests/support/work.h"

namespace perfkit::sys {
namespace {

using testing::Call;
using testing::FakeKernel;

TEST_CASE("a thread's switches are those of getrusage", "[switches]") {
  const uint64_t before = testing::SwitchesByUsage();
  const std::optional<uint64_t> now = ThreadSwitches();
  REQUIRE(now.has_value());
  CHECK(*now >= before);
  CHECK(*now <= testing::SwitchesByUsage());
}

TEST_CASE("it sleeps until it has left the CPU", "[switches][law]") {
  FakeKernel fake;
  for (const bool short_sleeps_are_none : {false, true}) {
    if (short_sleeps_are_none) testing::MakeShortSleepsNone(fake);
    const uint64_t before = testing::SwitchesByUsage();
    CHECK(SwitchAway());
    CHECK(testing::SwitchesByUsage() > before);
  }
}

TEST_CASE("it gives up in the end, and if the counters can't be read", "[switches][law]") {
  FakeKernel fake;
  fake.below().nanosleep = [](const timespec*) { return 0; };
  fake.below().getrusage = [](int, rusage* usage) {
    *usage = {};
    return 0;
  };
  CHECK_FALSE(SwitchAway());
  CHECK(fake.calls(Call::kNanosleep) < 20);
  fake.FailAll(Call::kGetrusage, EPERM);
  CHECK_FALSE(ThreadSwitches().has_value());
  CHECK_FALSE(SwitchAway());
}

}  // namespace
}  // namespace perfkit::sys
