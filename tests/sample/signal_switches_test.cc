// SignalSwitches: real events are disabled by number, and a descriptor that is used again for another event is left
// alone, whatever handlers do at that moment.
#include "src/sample/signal_switches.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "src/sys/perf_abi.h"
#include "tests/support/work.h"

namespace perfkit::sample {
namespace {

// An event that counts this thread's task-clock, enabled.
sys::OwnedFd OpenClock() {
  sys::PerfEventAttr attr{};
  attr.size = sizeof(attr);
  attr.type = 1;    // PERF_TYPE_SOFTWARE
  attr.config = 1;  // PERF_COUNT_SW_TASK_CLOCK
  attr.exclude_kernel = 1;
  return sys::OwnedFd(sys::kernel().perf_event_open(&attr, 0, -1, -1, 8));
}

uint64_t ValueOf(int fd) {
  uint64_t value = 0;
  REQUIRE(read(fd, &value, sizeof(value)) == sizeof(value));
  return value;
}

bool IsCounting(int fd) {
  const uint64_t before = ValueOf(fd);
  testing::Spin(10'000);
  return ValueOf(fd) != before;
}

TEST_CASE("all events of a number are disabled, and no others", "[live][switches][law]") {
  SignalSwitches switches;
  SignallingFd one(OpenClock()), same(OpenClock()), other(OpenClock()), never(OpenClock());
  REQUIRE(one);
  one.AddTo(switches, 5);
  same.AddTo(switches, 5);
  other.AddTo(switches, 6);
  switches.SwitchOff(7);
  for (const SignallingFd* const fd : {&one, &same, &other, &never}) CHECK(IsCounting(fd->get()));
  switches.SwitchOff(5);
  CHECK_FALSE(IsCounting(one.get()));
  CHECK_FALSE(IsCounting(same.get()));
  CHECK(IsCounting(other.get()));
  CHECK(IsCounting(never.get()));
}

TEST_CASE("thousands of descriptors have their places, and give them back", "[live][switches][law]") {
  SignalSwitches switches;
  std::vector<size_t> at;
  for (uint32_t i = 0; i < 3000; ++i) at.push_back(switches.Add(i, -1));
  std::vector<size_t> sorted = at;
  std::ranges::sort(sorted);
  CHECK(std::ranges::adjacent_find(sorted) == sorted.end());
  CHECK(sorted.back() < 3072);
  for (const size_t place : at) CHECK(switches.Remove(place));
  for (uint32_t i = 0; i < 3072; ++i) CHECK(switches.Add(i, -1) < 3072);
  SignallingFd last(OpenClock());
  last.AddTo(switches, 9'999);
  switches.SwitchOff(9'999);
  CHECK_FALSE(IsCounting(last.get()));
}

TEST_CASE("a descriptor that moves stays in its place, and one that replaces another takes it out",
          "[live][switches][law]") {
  SignalSwitches switches;
  SignallingFd first(OpenClock());
  first.AddTo(switches, 1);
  SignallingFd moved(std::move(first));
  switches.SwitchOff(1);
  CHECK_FALSE(IsCounting(moved.get()));
  SignallingFd second(OpenClock());
  second.AddTo(switches, 2);
  const int was = moved.get();
  moved = std::move(second);
  const sys::OwnedFd reused = OpenClock();
  CHECK(reused.get() == was);
  switches.SwitchOff(1);
  CHECK(IsCounting(reused.get()));
  switches.SwitchOff(2);
  CHECK_FALSE(IsCounting(moved.get()));
}

// The law: once a SignallingFd is closed, the event that gets its number is never disabled.
TEST_CASE("no handler disables the event that has got a closed descriptor", "[live][switches][law]") {
  SignalSwitches switches;
  std::atomic<bool> stop{false};
  std::thread handlers([&] {
    while (!stop) {
      switches.SwitchOff(1);
      testing::Spin(2000);  // Remove waits until no handler is in SwitchOff.
    }
  });
  int disabled = 0, same = 0, wrong = 0;
  for (int i = 0; i < 500 || disabled < 50; ++i) {
    SignallingFd target(OpenClock());
    target.AddTo(switches, 1);
    if (i % 2 == 0) std::this_thread::yield();
    disabled += !IsCounting(target.get());
    const int was = target.get();
    target.Reset();
    const sys::OwnedFd reused = OpenClock();
    if (reused.get() != was) continue;  // A sanitizer opens and closes files as the thread starts.
    ++same;
    wrong += !IsCounting(reused.get());
  }
  stop = true;
  handlers.join();
  CHECK(same >= 50);
  CHECK(wrong == 0);
}

TEST_CASE("in a forked child no handler is waited for", "[live][switches][law]") {
  SignalSwitches switches;
  std::atomic<bool> stop{false};
  std::thread handlers([&] {
    while (!stop) switches.SwitchOff(1);
  });
  for (int i = 0; i < 20; ++i) {
    const size_t at = switches.Add(2, -1);
    const pid_t child = fork();
    if (child == 0) {
      switches.OnForkedChild();
      _exit(switches.Remove(at) ? 0 : 1);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(switches.Remove(at));
  }
  stop = true;
  handlers.join();
}

}  // namespace
}  // namespace perfkit::sample
