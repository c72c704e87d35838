// Reads that the kernel refuses after a set was opened, and what a set says of a number that came another way.
#include <errno.h>
#include <sys/resource.h>

#include <array>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "src/sys/perf_abi.h"
#include "tests/count/sets.h"
#include "tests/support/cpus.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Call;
using testing::FakeKernel;

TEST_CASE("a clock whose base could not be read comes from the kernel, and says so", "[refused_read][law]") {
  FakeKernel fake;
  const CounterSet set = MustOpen(kFour);
  Snapshot begin, end;
  set.Read(begin);
  testing::SwitchAway();  // a new epoch: the base has to be read again
  fake.FailNth(1, EINTR, Call::kRead);
  set.Read(end);
  CHECK(fake.struck() == Call::kRead);
  const Count clock = set.Difference(begin, end, 0);
  CHECK(clock.validity.counted());
  CHECK(clock.validity.has(Validity::kFallback));
  CHECK(clock.value > 0);
  CHECK_FALSE(set.Difference(begin, end, 1).validity.has(Validity::kFallback));
  CHECK(set.Difference(begin, end, 2).value >= 1);
  testing::SwitchAway();
  fake.FailAll(Call::kRead, EIO);
  set.Read(end);
  CHECK(set.Difference(begin, end, 0).validity == Validity{Validity::kNotCounted});
  CHECK(set.Difference(begin, end, 1).validity.counted());
  fake.Forgive();
  set.Read(begin);
  testing::Spin(1000);
  set.Read(end);
  CHECK(set.Difference(begin, end, 0).value > 0);
  CHECK_FALSE(set.Difference(begin, end, 0).validity.has(Validity::kFallback));
}

TEST_CASE("a move is counted in the read whose base the kernel refuses", "[refused_read][law]") {
  const testing::TwoCpus cpus;
  if (!cpus.has_both()) SKIP_TEST("this takes two CPUs");
  FakeKernel fake;
  const CounterSet set = MustOpen(kFour);
  cpus.MoveTo(0);
  Snapshot begin, end;
  set.Read(begin);
  cpus.MoveTo(1);
  fake.FailNth(1, EINTR, Call::kRead);
  set.Read(end);
  CHECK(fake.struck() == Call::kRead);
  CHECK(set.Difference(begin, end, 3).value == 1);
}

TEST_CASE("usage that is refused at a read is no number", "[refused_read]") {
  FakeKernel fake;
  const std::array events = {EventSpec(event::kTaskClock), EventSpec(event::kPageFaults),
                             EventSpec(event::kContextSwitches)};
  const CounterSet set = MustOpen(events, Only(ReadPath::kUsage));
  for (const Call call : {Call::kGetrusage, Call::kClockGettime}) {
    for (const bool at_begin : {true, false}) {
      Snapshot begin, end;
      if (at_begin) fake.FailAll(call, ENOSYS);
      set.Read(begin);
      if (at_begin) fake.Forgive();
      if (!at_begin) fake.FailAll(call, ENOSYS);
      set.Read(end);
      fake.Forgive();
      for (size_t i = 0; i < set.size(); ++i) {
        CHECK(set.Difference(begin, end, i).validity == Validity{Validity::kNotCounted});
      }
      set.Read(begin);
      set.Read(end);
      CHECK(set.Difference(begin, end, 1).validity.counted());
    }
  }
}

// Minor faults 10, major 3, each time one call more of each.
int g_calls = 0;
int CountedCalls(int, rusage* usage) {
  *usage = {};
  usage->ru_minflt = 10 * g_calls;
  usage->ru_majflt = 3 * g_calls;
  usage->ru_nvcsw = 5 * g_calls;
  usage->ru_nivcsw = 2 * g_calls;
  ++g_calls;
  return 0;
}

TEST_CASE("usage: faults are the minor and the major ones, switches both kinds", "[refused_read]") {
  FakeKernel fake;
  const std::array events = {EventSpec(event::kPageFaults), EventSpec(event::kMinorFaults),
                             EventSpec(event::kMajorFaults), EventSpec(event::kContextSwitches)};
  const CounterSet set = MustOpen(events, Only(ReadPath::kUsage));
  fake.below().getrusage = CountedCalls;
  Snapshot begin, end;
  set.Read(begin);
  set.Read(end);
  const std::array<uint64_t, 4> expected = {13, 10, 3, 7};
  for (size_t i = 0; i < set.size(); ++i) CHECK(set.Difference(begin, end, i).value == expected[i]);
}

TEST_CASE("usage: a thread's clock is its own, whatever others do", "[refused_read][law]") {
  const CounterSet set = MustOpen(std::array{EventSpec(event::kTaskClock)}, Only(ReadPath::kUsage));
  Snapshot begin, end;
  const uint64_t before_ns = testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
  set.Read(begin);
  std::thread([] {
    const uint64_t until_ns = testing::NowNs(CLOCK_THREAD_CPUTIME_ID) + 20'000'000;
    while (testing::NowNs(CLOCK_THREAD_CPUTIME_ID) < until_ns) {
    }
  }).join();
  set.Read(end);
  CHECK(set.Difference(begin, end, 0).value <= testing::NowNs(CLOCK_THREAD_CPUTIME_ID) - before_ns);
}

TEST_CASE("usage: a read makes the calls that its events take, and no more", "[refused_read]") {
  FakeKernel fake;
  struct Case {
    std::vector<EventSpec> events;
    uint64_t clocks, usages;
  };
  const std::vector<Case> cases = {
      {{event::kTaskClock}, 1, 0},
      {{event::kContextSwitches}, 0, 1},
      {{event::kPageFaults, event::kMinorFaults, event::kMajorFaults, event::kContextSwitches}, 0, 1},
      {{event::kPageFaults, event::kTaskClock}, 1, 1},
  };
  for (const Case& one : cases) {
    const CounterSet set = MustOpen(one.events, Only(ReadPath::kUsage));
    const uint64_t clocks = fake.calls(Call::kClockGettime), usages = fake.calls(Call::kGetrusage);
    Snapshot now;
    set.Read(now);
    CHECK(fake.calls(Call::kClockGettime) - clocks == one.clocks);
    CHECK(fake.calls(Call::kGetrusage) - usages == one.usages);
    Snapshot later;
    set.Read(later);
    for (size_t i = 0; i < set.size(); ++i) CHECK(set.Difference(now, later, i).validity.counted());
  }
}

// What was asked of the kernel for software events, as bits: with the kernel's part, without.
uint32_t g_with_kernel = 0, g_without = 0;
int NoteKernelPart(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  if (attr->type == sys::kTypeSoftware) (attr->exclude_kernel ? g_without : g_with_kernel) |= 1u << attr->config;
  return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
}

TEST_CASE("user_only leaves alone what the kernel raises: without its part that would stay 0", "[refused_read][law]") {
  FakeKernel fake;
  fake.below().perf_event_open = NoteKernelPart;
  g_with_kernel = g_without = 0;
  CounterOptions options = Only(ReadPath::kGroupRead);
  options.user_only = true;
  options.require_all = false;
  const std::array events = {EventSpec(event::kPageFaults), EventSpec(event::kContextSwitches),
                             EventSpec(event::kCpuMigrations)};
  const CounterSet set = MustOpen(events, options);
  // The dummy counts nothing: it shows where the thread is, and whether perf events are allowed at all.
  CHECK((g_without & ~(1u << sys::kSwDummy)) == 1u << sys::kSwPageFaults);
  CHECK((g_with_kernel >> sys::kSwContextSwitches & 1) == 1);
  CHECK((g_with_kernel >> sys::kSwCpuMigrations & 1) == 1);
  CHECK((g_with_kernel >> sys::kSwPageFaults & 1) == 0);
  CHECK(set.fixed_flags(0).has(Validity::kUserOnly));
  if (!set.fixed_flags(1).counted()) return;  // this user may not watch the kernel, and was told so
  Snapshot begin, end;
  set.Read(begin);
  testing::SwitchAway(5);
  set.Read(end);
  CHECK(set.Difference(begin, end, 1).value >= 5);
}

}  // namespace
}  // namespace perfkit
