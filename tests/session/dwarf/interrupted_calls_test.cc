// Sessions with copied and live stacks interrupt no system call.
#include "tests/session/interrupted_calls.h"

#include <catch2/catch.hpp>
#include <string>

#include "perfkit/session.h"
#include "tests/support/kernel_version.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

// Earlier kernels send the signal of a sample in the kernel at once.
bool SignalsWait() { return testing::KernelIsAtLeast(6, 1); }

// Live stacks: a sample in the kernel sends its signal when the thread returns to user space. At this interval nearly
// all samples of these threads are in the kernel, just before or after they sleep.
TEST_CASE("stacks of a session interrupt no system call", "[session][interrupted_calls][law]") {
  const SessionStacks stacks = GENERATE(SessionStacks::kDumps, SessionStacks::kBest);
  CheckInterruptsNone({.interval = Often(),
                       .clock = SessionClock::kWall,
                       .stacks = stacks,
                       .user_only = !SignalsWait(),
                       .lines = false});
}

}  // namespace
}  // namespace perfkit::session
