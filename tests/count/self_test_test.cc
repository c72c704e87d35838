// What Open's self-test lets through, and what it holds back.
#include <sys/resource.h>

#include <array>
#include <catch2/catch.hpp>

#include "src/sys/clock.h"
#include "tests/count/sets.h"
#include "tests/support/fake_kernel.h"

namespace perfkit {
namespace {

using testing::FakeKernel;

int g_disturbed = 0;  // calls of getrusage that a signal disturbs

// What a signal that is pending at the fault does: perf counts that fault twice, getrusage once.
int GetrusageWithSignals(int who, rusage* usage) {
  const int result = sys::kLinux.getrusage(who, usage);
  if (g_disturbed > 0) {
    --g_disturbed;
    ++usage->ru_minflt;
  }
  return result;
}

TEST_CASE("a path is not banned for a signal that came into its self-test", "[self_test]") {
  FakeKernel fake;
  fake.below().getrusage = GetrusageWithSignals;
  g_disturbed = 1;
  const CounterSet set = MustOpen(std::array{EventSpec(event::kPageFaults)});
  CHECK(g_disturbed == 0);
  CHECK(set.path(0) == ReadPath::kRing);
}

// getrusage whose faults never move.
int GetrusageWithoutFaults(int who, rusage* usage) {
  const int result = sys::kLinux.getrusage(who, usage);
  usage->ru_minflt = usage->ru_majflt = 0;
  return result;
}

TEST_CASE("a path that is wrong each time is banned, and only that one", "[self_test]") {
  FakeKernel fake;
  fake.below().getrusage = GetrusageWithoutFaults;
  const CounterSet set = MustOpen(kFour);
  CHECK(set.path(0) == ReadPath::kThreadClock);
  CHECK(set.path(1) == ReadPath::kGroupRead);
  CHECK(set.path(2) == ReadPath::kRing);
}

uint64_t g_stolen_ns = 0;  // from each reading of the clock

// A task-clock that stands still: only what the tick counter adds after a reading of it makes it move.
ssize_t ReadStandingClock(int fd, void* buffer, size_t size) {
  const ssize_t got = sys::kLinux.read(fd, buffer, size);
  if (size != 2 * sizeof(uint64_t)) return got;
  static_cast<uint64_t*>(buffer)[1] = 1'000'000;
  const uint64_t begin_ns = sys::OwnClockNs(CLOCK_MONOTONIC);
  while (sys::OwnClockNs(CLOCK_MONOTONIC) - begin_ns < g_stolen_ns) continue;
  return got;
}

// A host that gives the CPU to another machine meanwhile makes the tick counter add as much as the test expects.
TEST_CASE("a clock that stands still is found out, even if time is stolen from its reading", "[self_test]") {
  g_stolen_ns = GENERATE(0, 200'000);
  FakeKernel fake;
  fake.below().read = ReadStandingClock;
  const CounterSet set = MustOpen(std::array{EventSpec(event::kTaskClock), EventSpec(event::kPageFaults)});
  CHECK(set.path(0) != ReadPath::kThreadClock);
  CHECK(set.path(1) == ReadPath::kRing);
}

}  // namespace
}  // namespace perfkit
