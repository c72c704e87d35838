// Sessions interrupt no system call.
#include "tests/session/interrupted_calls.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/session/support.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

TEST_CASE("an interrupted call is counted", "[session][interrupted_calls][law]") {
  struct sigaction handler {
  }, before{};
  handler.sa_handler = [](int) {};  // without SA_RESTART
  REQUIRE(sigaction(SIGUSR1, &handler, &before) == 0);
  {
    InterruptedCalls calls(0, true);
    for (size_t call = 0; call < InterruptedCalls::kCalls; ++call) {
      INFO(InterruptedCalls::kNames[call]);
      while (calls.interrupted(call) == 0) {
        calls.Signal(call, SIGUSR1);
        std::this_thread::sleep_for(100us);
      }
      CHECK(calls.interrupted(call) > 0);
    }
  }
  sigaction(SIGUSR1, &before, nullptr);
}

TEST_CASE("a session of the wall clock interrupts no system call", "[session][interrupted_calls][law]") {
  CheckInterruptsNone({.interval = Often(), .clock = SessionClock::kWall, .stacks = SessionStacks::kNone, .lines = false});
}

}  // namespace
}  // namespace perfkit::session
