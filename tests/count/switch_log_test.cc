// Migrations that switch records tell: gaps in the records, and reads that were left by a jump.
#include "src/count/switch_log.h"

#include <array>
#include <catch2/catch.hpp>

#include "perfkit/frame_counter.h"
#include "perfkit/scope.h"
#include "src/sys/perf_abi.h"
#include "tests/count/sets.h"
#include "tests/support/cpus.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/single_step.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// As an ordinary user's are counted, also if this user is root.
CounterSet MigrationsByRecords() {
  CounterOptions options;
  options.user_only = true;
  return MustOpen(std::array{EventSpec(event::kCpuMigrations), EventSpec("migrations")}, options);
}

TEST_CASE("migrations by records are the moves of the thread", "[switch_log]") {
  const testing::TwoCpus cpus;
  if (!cpus.has_both()) SKIP_TEST("this takes two CPUs");
  cpus.MoveTo(0);
  const CounterSet set = MigrationsByRecords();
  Snapshot begin, end;
  for (const int moves : {0, 1, 2, 7, 100}) {
    cpus.MoveTo(0);
    set.Read(begin);
    for (int i = 1; i <= moves; ++i) cpus.MoveTo(i % 2);
    set.Read(end);
    CHECK(set.Difference(begin, end, 0).value == static_cast<uint64_t>(moves));
    CHECK(set.Difference(begin, end, 0).validity.counted());
  }
}

TEST_CASE("a gap in the records is told, and what begins after it is counted", "[switch_log][law]") {
  const testing::TwoCpus cpus;
  if (!cpus.has_both()) SKIP_TEST("this takes two CPUs");
  cpus.MoveTo(0);
  const CounterSet set = MigrationsByRecords();
  CHECK(set.reason(0).ok());
  for (int round = 0; round < 3; ++round) {
    Snapshot before, middle, later;
    ScopeTotals over, after;
    set.Read(before);
    testing::SwitchAway(count::kSwitchesInRing + 1);
    set.Read(middle);
    cpus.MoveTo((round + 1) % 2);
    set.Read(later);
    for (const size_t i : {0, 1}) {  // a copy too
      CHECK(set.Difference(before, middle, i).validity == Validity{Validity::kNotCounted});
      CHECK(set.Difference(before, later, i).validity == Validity{Validity::kNotCounted});
      CHECK(set.Difference(middle, later, i).validity.counted());
      CHECK(set.Difference(middle, later, i).value == 1);
      CHECK(absl::IsDataLoss(set.reason(i)));
    }
    over.Add(set, middle, later);
    after.Add(set, middle, later);
    over.Add(set, before, later);
    CHECK(over.count(set, 0).validity == Validity{Validity::kNotCounted});
    CHECK(after.count(set, 0).value == 1);
  }
}

int g_dummies = 0;  // events that were opened to count nothing

int OpenAndCountDummies(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group_fd, unsigned long flags) {
  g_dummies += attr->type == sys::kTypeSoftware && attr->config == sys::kSwDummy ? 1 : 0;
  return sys::kLinux.perf_event_open(attr, pid, cpu, group_fd, flags);
}

// Requires that `set` counts switches at `i`.
void CheckSwitches(const CounterSet& set, size_t i) {
  for (const int switches : {0, 1, 100}) {
    Snapshot begin, end;
    const uint64_t before = testing::SwitchesByUsage();
    set.Read(begin);
    const uint64_t inside = testing::SwitchesByUsage();
    testing::SwitchAway(switches);
    const uint64_t at_least = testing::SwitchesByUsage() - inside;
    set.Read(end);
    const uint64_t at_most = testing::SwitchesByUsage() - before;
    const Count count = set.Difference(begin, end, i);
    REQUIRE(count.validity.counted());
    CHECK(count.value >= at_least);
    CHECK(count.value <= at_most);
  }
}

TEST_CASE("records that are overwritten while they are read are a gap", "[switch_log][law]") {
  const testing::TwoCpus cpus;
  if (!cpus.has_both()) SKIP_TEST("this takes two CPUs");
  if (!testing::kHasSingleSteps) SKIP_TEST(testing::kNoSingleSteps);
  const sys::LazyRights rights;
  const auto ring = count::OpenSwitchRing(true, rights);
  if (!ring.ok()) SKIP_TEST(ring.status().ToString());
  for (const uint32_t at : {200, 1000, 3000}) {
    CAPTURE(at);
    count::MigrationCounter counter;
    cpus.MoveTo(0);
    counter.Start(*ring, static_cast<uint32_t>(cpus.cpu(0)));
    testing::SwitchAway(count::kSwitchesInRing / 2);
    for (const int which : {1, 0, 1}) cpus.MoveTo(which);
    bool interrupted = false;
    const auto overwrite = [&] {
      testing::SwitchAway(count::kSwitchesInRing);
      interrupted = true;
    };
    testing::InterruptAt(at, overwrite, [&] { counter.Update(*ring); });
    REQUIRE(interrupted);
    CHECK(counter.gaps() == 1);
    // And what begins after it is counted.
    const uint64_t before = counter.migrations();
    cpus.MoveTo(0);
    counter.Update(*ring);
    CHECK(counter.migrations() == before + 1);
  }
}

TEST_CASE("the event of a set's clock writes the records of switches, too", "[switch_log][law]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenAndCountDummies;
  CounterOptions options;
  SECTION("bare records") {}
  SECTION("with CPUs, for migrations") { options.user_only = true; }
  g_dummies = 0;
  const CounterSet set = MustOpen(kFour, options);
  REQUIRE(set.path(0) == ReadPath::kThreadClock);
  REQUIRE(set.path(2) == ReadPath::kRing);
  CHECK(g_dummies == 1);
  CheckSwitches(set, 2);
  Snapshot begin, end;
  set.Read(begin);
  testing::SwitchAway(10);
  set.Read(end);
  CHECK(set.Difference(begin, end, 0).value > 0);
}

// A task-clock that stands still.
ssize_t ReadStoppedClock(int fd, void* buffer, size_t size) {
  const ssize_t got = sys::kLinux.read(fd, buffer, size);
  if (size == 2 * sizeof(uint64_t)) static_cast<uint64_t*>(buffer)[1] = 1'000'000;
  return got;
}

TEST_CASE("switches are counted by an event of their own if the task-clock is not", "[switch_log][law]") {
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenAndCountDummies;
  fake.below().read = ReadStoppedClock;
  g_dummies = 0;
  const CounterSet set = MustOpen(std::array{EventSpec(event::kTaskClock), EventSpec(event::kContextSwitches)});
  REQUIRE(set.path(0) != ReadPath::kThreadClock);
  REQUIRE(set.path(1) == ReadPath::kRing);
  CHECK(g_dummies > 1);
  CheckSwitches(set, 1);
}

// By records for an ordinary user, else by the kernel's own event, which has no gaps.
TEST_CASE("frames have migrations again after a frame with a gap in the records", "[switch_log][law]") {
  FrameCounter frames({.events = {"cpu-migrations"}});
  const FrameId other = frames.DefineFrame("other");
  const auto mark = [&] {
    frames.Mark();
    frames.Mark(other);
  };
  mark();
  if (!frames.reason(0).empty()) SKIP_TEST("no migrations here");
  for (int round = 0; round < 3; ++round) {
    mark();
    testing::SwitchAway(count::kSwitchesInRing + 1);
    mark();
    const auto missing = [&] { return ((frames.last().missing | frames.last(other).missing) & 1) != 0; };
    for (int tries = 0; missing() && tries < 100; ++tries) mark();  // a mark that is interrupted may leave a gap
    CHECK(!missing());
  }
}

}  // namespace
}  // namespace perfkit
