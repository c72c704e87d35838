// Live rings: the head counts, the mapping overwrites, and both are released in the right order.
#include "src/open/live_ring.h"

#include <catch2/catch.hpp>

#include "tests/support/fake_kernel.h"
#include "tests/support/work.h"

namespace perfkit::open {
namespace {

OpenRequest FaultRequest() {
  OpenRequest request;
  request.attr.type = sys::kTypeSoftware;
  request.attr.config = sys::kSwPageFaults;
  request.attr.sample_period_or_freq = 1;
  request.attr.watermark = 1;
  request.attr.wakeup_events_or_watermark = ~0u;
  request.asked = "page faults of this thread";
  return request;
}

TEST_CASE("each event of period 1 moves the head by an empty record, far past the ring's size", "[live_ring]") {
  testing::FreshPages memory(3000);
  const auto ring = LiveRing::Open(FaultRequest(), 1, sys::ReadRights());
  REQUIRE(ring.ok());
  CHECK(ring->data().size() == sys::PageSize());
  const uint64_t before = ring->head();
  memory.Touch(0, 3000);
  const uint64_t bytes = ring->head() - before;
  CHECK(bytes % 8 == 0);
  CHECK(testing::AreFaultsOf(bytes / 8, 3000));
}

TEST_CASE("a page alone has no data", "[live_ring]") {
  const auto ring = LiveRing::Open(FaultRequest(), 0, sys::ReadRights());
  REQUIRE(ring.ok());
  CHECK(ring->data().empty());
}

TEST_CASE("a ring that cannot be mapped is an error with its limit, and its event is closed", "[live_ring]") {
  testing::FakeKernel fake;
  {
    const auto too_odd = LiveRing::Open(FaultRequest(), 3, sys::ReadRights());
    CHECK(absl::IsInvalidArgument(too_odd.status()));
    fake.FailAll(testing::Call::kMmap, 1 /* EPERM */);
    const auto no_memory = LiveRing::Open(FaultRequest(), 1, sys::ReadRights());
    CHECK(absl::IsResourceExhausted(no_memory.status()));
    CHECK(std::string(no_memory.status().message()).find("perf_event_mlock_kb") != std::string::npos);
  }
  CHECK(fake.Leaks() == "");
}

}  // namespace
}  // namespace perfkit::open
