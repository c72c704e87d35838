// Zones that end before their scope does, and what they say that they have counted.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "tests/count/frame/zones.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

TEST_CASE("zone ends: its counts are those of the call, up to the end") {
  FrameCounter frames({.events = kEvents});
  if (!frames.reason(kFaults).empty()) SKIP_TEST(std::string(frames.reason(kFaults)));
  frames.Mark();
  testing::FreshPages pages(64);
  const testing::OtherFaults others;
  FrameRecord first, second, again;
  {
    FrameCounter::Zone zone(frames, {"zone"});
    pages.Touch(0, 7);
    FrameCounter::Zone inner(&frames, {"inner"});
    pages.Touch(7, 5);
    inner.End(second);
    inner.End(again);
    zone.End(first);
    pages.Touch(12, 9);
  }
  const uint64_t beside = others.Beside(21);
  CHECK(testing::AreFaultsOf(first.values[kFaults], 12, beside));
  CHECK(testing::AreFaultsOf(second.values[kFaults], 5, beside));
  CHECK((first.missing >> kFaults & 1) == 0);
  CHECK(first.wall_ns >= second.wall_ns);
  CHECK(second.wall_ns > 0);
  CHECK(again.missing == ~0u);
  frames.Mark();
  const auto zones = frames.zones();
  CHECK(zones[1].total[kFaults].value == first.values[kFaults]);
  CHECK(zones[2].total[kFaults].value == second.values[kFaults]);
}

TEST_CASE("zone ends: the outermost one of a worker has its counts, too") {
  FrameCounter frames({.events = kEvents});
  if (!frames.reason(kFaults).empty()) SKIP_TEST(std::string(frames.reason(kFaults)));
  FrameRecord counts;
  uint64_t beside = 0;
  std::thread([&] {
    testing::FreshPages pages(6);
    const testing::OtherFaults others;
    FrameCounter::Zone zone(frames, {"zone"});
    pages.Touch(0, 6);
    zone.End(counts);
    beside = others.Beside(6);
  }).join();
  CHECK((counts.missing >> kFaults & 1) == 0);
  CHECK(testing::AreFaultsOf(counts.values[kFaults], 6, beside));
  CHECK(Find(frames.zones(), "zone", "workers")->total[kFaults].value == counts.values[kFaults]);
}

TEST_CASE("zone ends: without a number there is none, not 0") {
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  FrameRecord counts;
  FrameCounter::Zone none(nullptr, {"none"});
  none.End(counts);
  CHECK(counts.missing == ~0u);
  FrameCounter::Zone outer(frames, {"outer"}), inner(frames, {"inner"});
  counts = {.missing = 0};
  outer.End(counts);  // Not the innermost one.
  CHECK(counts.missing == ~0u);
  inner.End(counts);
  CHECK(counts.missing == ~0u);
  FrameCounter::Zone other(frames, {"other"});
  std::thread([&] { other.End(counts); }).join();
  CHECK(counts.missing == ~0u);
  CHECK(frames.Stats().cross_thread == 1);
  FrameCounter::Zone open(frames, {"open"});
  frames.SetEnabled(false);
  open.End(counts);
  CHECK(counts.missing == ~0u);
  FrameCounter::Zone off(frames, {"off"});
  off.End(counts);
  CHECK(counts.missing == ~0u);
}

TEST_CASE("zone ends: in a forked child none has counts") {
  FrameCounter frames({.events = kEvents});
  FrameCounter::Zone zone(frames, {"zone"});
  const pid_t child = fork();
  if (child == 0) {
    FrameRecord counts;
    counts.missing = 0;
    zone.End(counts);
    _exit(counts.missing == ~0u ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  FrameRecord counts;
  zone.End(counts);
  if (frames.reason(kFaults).empty()) CHECK((counts.missing >> kFaults & 1) == 0);
}

}  // namespace
}  // namespace perfkit
