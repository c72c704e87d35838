// The time of a tick, by readings of two clocks.
#include "src/count/frame/tick_clock.h"

#include <catch2/catch.hpp>
#include <chrono>
#include <thread>

#include "perfkit/detail/user_page.h"
#include "src/count/tick_rate.h"

namespace perfkit::count {
namespace {

using namespace std::chrono_literals;

// A frame began with the tick at which the one before it ended, and may be read much later.
TEST_CASE("the time of a tick does not depend on when it is asked for", "[frame][law]") {
  TickClock clock(TickRateOf(UserPage{}).ns_per_tick_q32);
  for (int round = 0; round < 5; ++round) {
    const uint64_t tick = ReadTicks();
    std::this_thread::sleep_for(200us);
    clock.Read();
    const uint64_t ns = clock.ToNs(tick);
    for (int reading = 0; reading < 10; ++reading) {
      std::this_thread::sleep_for(150us);
      clock.Read();
      CHECK(clock.ToNs(tick) == ns);
    }
  }
}

}  // namespace
}  // namespace perfkit::count
