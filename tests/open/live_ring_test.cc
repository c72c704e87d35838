// Live rings: the head counts, the mapping overwrites, and both are released in the right order.
#include "src/open/live_ring.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <memory>

#include "perfkit/count.h"
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

// The law: the newest record has the event's count, also before the first record, and whatever happened while the ring
// was being mapped.
TEST_CASE("records have the whole count of an event", "[live_ring]") {
  static testing::FreshPages* touched = nullptr;
  testing::FreshPages memory(8);
  touched = &memory;
  OpenRequest request = FaultRequest();
  request.attr.sample_type = sys::kSampleRead;
  request.attr.write_backward = 1;
  testing::FakeKernel fake;
  fake.below().mmap = [](void* address, size_t size, int protection, int flags, int fd, off_t offset) {
    touched->Touch(0, 5);
    return sys::kLinux.mmap(address, size, protection, flags, fd, offset);
  };
  const auto ring = LiveRing::Open(request, 1, sys::ReadRights());
  REQUIRE(ring.ok());
  const BackwardRing newest{&ring->page()->data_head, ring->data().data(),
                            static_cast<uint32_t>(ring->data().size() - 1)};
  for (size_t pages = 5; pages <= 8; ++pages) {
    uint64_t counted = 0, recorded = 1;
    for (int i = 0; i < 5 && counted != recorded; ++i) {  // A page of this program's own may come in between.
      REQUIRE(::read(ring->fd(), &counted, sizeof(counted)) == sizeof(counted));
      recorded = ReadNewestCount(newest);
    }
    CHECK(recorded == counted);
    CHECK(counted >= pages - 5);
    if (pages < 8) memory.Touch(pages, 1);
  }
  fake.FailAll(testing::Call::kIoctl, EACCES);
  CHECK_FALSE(LiveRing::Open(request, 1, sys::ReadRights()).ok());
  CHECK(LiveRing::Open(FaultRequest(), 1, sys::ReadRights()).ok());  // Its head counts.
}

// Requires that the ring counts the faults of touching pages.
void CheckFaults(const LiveRing& ring) {
  testing::FreshPages memory(50);
  const uint64_t before = ring.head();
  memory.Touch(0, 50);
  CHECK(testing::AreFaultsOf((ring.head() - before) / 8, 50));
}

int g_in_groups = 0;  // Events that were opened in a group, or refused in one.

TEST_CASE("an event of a group counts, and goes on when the first of the group is closed", "[live_ring]") {
  testing::FakeKernel fake;
  const bool is_refused = GENERATE(false, true);
  g_in_groups = 0;
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    g_in_groups += group >= 0 ? 1 : 0;
    return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
  };
  OpenRequest request = FaultRequest();
  {
    auto first = std::make_unique<LiveRing>(LiveRing::Open(FaultRequest(), 1, sys::ReadRights()).value());
    request.group_fd = first->fd();
    if (is_refused) request.cpu = sched_getcpu();  // Not that of the group.
    const auto ring = LiveRing::Open(request, 1, sys::ReadRights());
    REQUIRE(ring.ok());
    CHECK(g_in_groups > 0);
    if (!is_refused) CheckFaults(*ring);
    CheckFaults(*first);
    first.reset();
    if (!is_refused) CheckFaults(*ring);
  }
  CHECK(fake.Leaks() == "");
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
