// The time of a group as its thread's task-clock: held against a task-clock event of its own, opened beside.
#include <atomic>
#include <catch2/catch.hpp>
#include <cmath>
#include <thread>
#include <vector>

#include "perfkit/child.h"
#include "tests/count/sets.h"
#include "tests/support/measurement.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Sleep;
using testing::Spin;

// A set whose clock is its group's time, and a task-clock alone, which has an event of its own.
struct Pair {
  CounterSet with_group, alone;

  static Pair Open(Target target, std::initializer_list<EventSpec> events) {
    auto with_group = CounterSet::Open(events, target, Only(ReadPath::kGroupRead));
    auto alone = CounterSet::Open({event::kTaskClock}, target, Only(ReadPath::kGroupRead));
    REQUIRE(with_group.ok());
    REQUIRE(alone.ok());
    return {*std::move(with_group), *std::move(alone)};
  }
};

struct Times {
  double with_group, alone;
  double apart;  // the most that lies between what one saw and the other: the time of both pairs of reads, by the wall
};

// Nanoseconds that `work` takes, by the clock on the wall: what a hypervisor steals meanwhile is in it.
template <class Work>
double WallNs(Work&& work) {
  const uint64_t begun = testing::NowNs();
  work();
  return static_cast<double>(testing::NowNs() - begun);
}

template <class Work>
Times Clock(const Pair& pair, size_t index, Work&& work) {
  Snapshot a, b, alone_a, alone_b;
  const auto read = [&](Snapshot& together, Snapshot& alone) {
    pair.with_group.Read(together);
    pair.alone.Read(alone);
  };
  double apart = WallNs([&] { read(a, alone_a); });
  work();
  apart += WallNs([&] { read(b, alone_b); });
  const Count by_group = pair.with_group.Difference(a, b, index);
  const Count by_itself = pair.alone.Difference(alone_a, alone_b, 0);
  CHECK(by_group.validity.counted());
  CHECK(by_group.coverage() == 1);
  CHECK(by_itself.value > 0);
  return {static_cast<double>(by_group.value), static_cast<double>(by_itself.value), apart};
}

// `threads` is the number of threads that may run while the sets are read.
void CheckSame(const Times& times, int threads = 1) {
  INFO(times.with_group << " ns by the group, " << times.alone << " ns by its own event, read " << times.apart
                        << " ns apart");
  CHECK(std::abs(times.with_group - times.alone) <= threads * times.apart + 10e3);
}

void WorkAndSleep() {
  for (int i = 0; i < 50; ++i) {
    Spin(300'000);
    Sleep(100'000);
  }
}

TEST_CASE("a group's time is the thread's task-clock, wherever it stands in the set", "[group_clock][law]") {
  const std::initializer_list<EventSpec> orders[] = {
      {event::kTaskClock, event::kPageFaults, event::kMinorFaults},
      {event::kPageFaults, event::kTaskClock, event::kMinorFaults},
      {event::kTaskClock, event::kPageFaults},
      {event::kPageFaults, event::kTaskClock},
  };
  for (const auto& order : orders) {
    const Pair pair = Pair::Open(Target::ThisThread(), order);
    const size_t clock = pair.with_group.name(0) == "task-clock" ? 0 : 1;
    const Times times = Clock(pair, clock, WorkAndSleep);
    CheckSame(times);
    CHECK(times.with_group > 1e6);

    testing::FreshPages memory(100);
    Snapshot begin, end;
    const testing::OtherFaults others;
    pair.with_group.Read(begin);
    memory.Touch(0, 100);
    pair.with_group.Read(end);
    const uint64_t faults = pair.with_group.Difference(begin, end, 1 - clock).value;
    CHECK(testing::AreFaultsOf(faults, 100, others.Beside(100)));
  }
}

TEST_CASE("a group's time stands still while its thread sleeps", "[group_clock][measurement]") {
  const Pair pair = Pair::Open(Target::ThisThread(), {event::kTaskClock, event::kPageFaults});
  CHECK(testing::HoldsOnceInThree([&] {
    Times times{};
    const double wall = WallNs([&] { times = Clock(pair, 0, [] { Sleep(50'000'000); }); });
    CHECK(wall >= 50e6);
    CheckSame(times);
    return times.with_group < wall / 10;  // What a hypervisor takes just before the sleep counts.
  }));
}

TEST_CASE("a group's time stands still while the set is switched off", "[group_clock][law]") {
  Pair pair = Pair::Open(Target::ThisThread(), {event::kTaskClock, event::kPageFaults});
  double switching = 0;
  Times times = Clock(pair, 0, [&] {
    Spin(1'000'000);
    switching += WallNs([&] {
      REQUIRE(pair.with_group.Disable().ok());
      REQUIRE(pair.alone.Disable().ok());
    });
    Spin(100'000'000);
    switching += WallNs([&] {
      REQUIRE(pair.with_group.Enable().ok());
      REQUIRE(pair.alone.Enable().ok());
    });
  });
  times.apart += switching;
  CheckSame(times);
}

TEST_CASE("group times of threads that come, go and stay add up", "[group_clock][law]") {
  const Pair pair = Pair::Open(Target::AllThreads(), {event::kTaskClock, event::kPageFaults, event::kMinorFaults});
  std::atomic<bool> stop{false};
  std::vector<std::thread> staying;
  const Times times = Clock(pair, 0, [&] {
    for (int i = 0; i < 2; ++i) staying.emplace_back([&] { stop.wait(false); });
    for (int i = 0; i < 10; ++i) std::thread(WorkAndSleep).join();
  });
  stop = true;
  stop.notify_all();
  for (std::thread& thread : staying) thread.join();
  CheckSame(times, 4);  // us, those that stay, and the last of the others, which may still be ending
  CHECK(times.with_group > 10e6);
}

TEST_CASE("another thread's group time is its task-clock", "[group_clock][law]") {
  std::atomic<pid_t> tid{0};
  std::atomic<bool> go{false}, done{false};
  std::thread other([&] {
    tid = gettid();
    go.wait(false);
    WorkAndSleep();
    done = true;
    done.notify_all();
    go.wait(true);
  });
  while (tid == 0) std::this_thread::yield();
  const Pair pair = Pair::Open(Target::Thread(tid), {event::kTaskClock, event::kPageFaults, event::kMinorFaults});
  const Times times = Clock(pair, 0, [&] {
    go = true;
    go.notify_all();
    done.wait(false);
  });
  go = false;
  go.notify_all();
  other.join();
  CheckSame(times);
}

TEST_CASE("a child's group time begins with its exec", "[group_clock][law]") {
  auto child = Child::Spawn({"sh", "-c", "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"});
  REQUIRE(child.ok());
  const Pair pair = Pair::Open(child->target(), {event::kTaskClock, event::kPageFaults});
  const Times times = Clock(pair, 0, [&] {
    REQUIRE(child->Start().ok());
    REQUIRE(child->Wait()->ok());
  });
  CHECK(times.with_group == Approx(times.alone).margin(0.1e6));
}

}  // namespace
}  // namespace perfkit
