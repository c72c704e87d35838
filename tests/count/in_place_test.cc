// Sets whose group the kernel writes straight into the snapshot, and sets that look like them: each number in its
// place.
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <vector>

#include "perfkit/frame_counter.h"
#include "tests/count/sets.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::FreshPages;

// Work that only these two count: `pages` faults, and time.
struct FaultsAndTime {
  FreshPages memory{64};

  void Do() {
    memory.Forget();
    memory.Touch(0, memory.pages());
    testing::Spin(100'000);
  }
};

// Whatever the paths: the clock ran, but not longer than the wall's, and `other` counted `count`.
void CheckClockAnd(const char* other, uint64_t count) {
  for (const bool clock_first : {true, false}) {
    const std::vector<EventSpec> events =
        clock_first ? std::vector<EventSpec>{"task-clock", other} : std::vector<EventSpec>{other, "task-clock"};
    const CounterSet set = MustOpen(events);
    CAPTURE(other, clock_first, ReadPathName(set.path(0)), ReadPathName(set.path(1)));
    const size_t clock = clock_first ? 0 : 1;
    FaultsAndTime work;
    work.Do();
    Snapshot begin, end;
    set.Read(end);
    const uint64_t begun = testing::NowNs();
    set.Read(begin);
    work.Do();
    set.Read(end);
    const uint64_t wall = testing::NowNs() - begun;
    CHECK(set.Difference(begin, end, clock).value > 0);
    CHECK(set.Difference(begin, end, clock).value <= wall + wall / 100 + 1'000'000);
    const uint64_t counted = set.Difference(begin, end, 1 - clock).value;
    CHECK(counted >= count);
    CHECK(counted <= count + (count != 0 && testing::kSanitized ? 100 : 0));
  }
}

TEST_CASE("a clock and a group of one keep their order, by whatever path the clock is read", "[in_place][law]") {
  for (const char* other : {"dummy", "alignment-faults", "emulation-faults"}) CheckClockAnd(other, 0);
}

TEST_CASE("frames: a clock and a group of one keep their order", "[in_place][law]") {
  for (const char* other : {"dummy", "alignment-faults", "emulation-faults"}) {
    CAPTURE(other);
    FrameCounter frames({.events = {"task-clock", other}});
    frames.Mark();
    FaultsAndTime().Do();
    frames.Mark();
    const ZoneStats frame = frames.zones().front();
    REQUIRE(frame.total[0].validity.counted());
    CHECK(frame.total[0].value > 0);
    CHECK(frame.total[1].value == 0);
  }
}

TEST_CASE("two clocks have the same time, whatever stands between them", "[in_place][law]") {
  const auto set = CounterSet::Open({"task-clock", "cgroup-switches", "cpu-clock", "dummy", "task-clock"});
  if (!set.ok()) SKIP_TEST("this user or kernel counts no switches of control groups");
  Snapshot begin, end;
  set->Read(begin);
  FaultsAndTime().Do();
  set->Read(end);
  const auto value = [&](size_t i) { return set->Difference(begin, end, i).value; };
  CHECK(value(0) == value(4));
  CHECK(value(0) > 0);
  CHECK(value(2) > 0);
  CHECK(value(3) == 0);
  CHECK(value(1) < value(0));  // Each switch between control groups takes more than a nanosecond.
}

// Rings take more than one page, clocks one.
void* MapOnePageOnly(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if (fd < 0 || size <= 4096) return sys::kLinux.mmap(address, size, protection, flags, fd, offset);
  errno = EPERM;
  return MAP_FAILED;
}

TEST_CASE("a clock of its own beside faults without a ring: each number in its place", "[in_place][law]") {
  if (sysconf(_SC_PAGESIZE) != 4096) return;  // see MapOnePageOnly
  testing::FakeKernel fake;
  fake.below().mmap = MapOnePageOnly;
  CheckClockAnd("page-faults", FaultsAndTime().memory.pages());
}

}  // namespace
}  // namespace perfkit
