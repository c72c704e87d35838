// The life of counter sets: opening, what is refused, targets, fork, and that nothing leaks.
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "perfkit/counter.h"
#include "tests/count/sets.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::FreshPages;

TEST_CASE("the child of a fork holds nothing and reads nothing", "[counter_set][fork]") {
  CounterSet fast = MustOpen(kFour);
  CounterSet slow = MustOpen(kByKernel, Only(ReadPath::kGroupRead));
  const size_t before = OpenDescriptors();
  const pid_t child = fork();
  if (child == 0) {
    bool fine = OpenDescriptors() < before;
    for (const CounterSet* set : {&fast, &slow}) {
      Snapshot begin, end;
      set->Read(begin);
      set->Read(end);
      for (size_t i = 0; i < 4; ++i) {
        fine = fine && !set->Difference(begin, end, i).validity.counted();
        fine = fine && !set->reason(i).ok();
      }
    }
    const absl::Status enabled = slow.Enable();
    fine = fine && absl::StrContains(enabled.message(), "belongs to the parent process");
    auto own = CounterSet::Open(kFour);
    _exit(fine && own.ok() ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  Snapshot begin, end;
  fast.Read(begin);
  fast.Read(end);
  CHECK(fast.Difference(begin, end, 1).validity.counted());
}

TEST_CASE("opening and closing leaks nothing", "[counter_set]") {
  (void)MustOpen(kFour);
  const size_t before = OpenDescriptors();
  for (int i = 0; i < 50; ++i) {
    CounterSet set = MustOpen(kFour);
    CounterSet moved = std::move(set);
    set = MustOpen(kByKernel, Only(ReadPath::kGroupRead));
    moved = std::move(set);
  }
  CHECK(OpenDescriptors() == before);
}

TEST_CASE("a set that was moved from is empty, and reads nothing of what another one owns", "[counter_set]") {
  for (const ReadPath path : {ReadPath::kGroupRead, ReadPath::kRing}) {
    const std::array events = {EventSpec(event::kPageFaults)};
    CounterSet set = MustOpen(events, Only(path));
    Snapshot begin, end;
    set.Read(begin);
    CounterSet owner = std::move(set);
    CHECK(owner.size() == 1);
    CHECK(set.size() == 0);  // NOLINT(bugprone-use-after-move): that is what this is about
    set.Read(end);
    CHECK((end.missing & 1) == 1);
    CHECK(set.Difference(begin, end, 0).validity == Validity{Validity::kNotCounted});
    CHECK(absl::IsFailedPrecondition(set.Disable()));
    CounterSet& same = owner;
    owner = std::move(same);
    owner.Read(end);
    CHECK(owner.Difference(begin, end, 0).validity.counted());
    set = std::move(owner);
    set.Read(end);
    CHECK(set.Difference(begin, end, 0).validity.counted());
    owner.Read(end);  // NOLINT(bugprone-use-after-move)
    CHECK((end.missing & 1) == 1);
  }
}

TEST_CASE("what cannot be counted is refused, or kept as not counted with its reason", "[counter_set][law]") {
  const auto refused = CounterSet::Open({"context-switches:u"});
  REQUIRE_FALSE(refused.ok());
  CHECK(absl::IsInvalidArgument(refused.status()));
  CHECK(std::string(refused.status().message()).find("count 0 for ever") != std::string::npos);

  CounterOptions lenient;
  lenient.require_all = false;
  const CounterSet set = MustOpen(std::array{EventSpec("context-switches:u"), EventSpec("page-faults")}, lenient);
  CHECK_FALSE(set.reason(0).ok());
  CHECK(set.reason(1).ok());
  Snapshot begin, end;
  set.Read(begin);
  testing::Sleep(1);
  set.Read(end);
  CHECK(set.Difference(begin, end, 0).validity == Validity{Validity::kNotCounted});
  CHECK(set.Difference(begin, end, 1).validity.counted());
  for (const size_t none : {size_t{2}, size_t{17}, size_t{40}, SIZE_MAX}) {  // Beyond the bits of a mask, too.
    CHECK(set.Difference(begin, end, none).validity == Validity{Validity::kNotCounted});
  }
}

TEST_CASE("an empty set and a set of too many are refused in words", "[counter_set]") {
  CHECK(absl::IsInvalidArgument(CounterSet::Open({}).status()));
  const std::vector<EventSpec> many(kMaxEvents + 1, EventSpec(event::kPageFaults));
  const auto refused = CounterSet::Open(many);
  CHECK(absl::IsInvalidArgument(refused.status()));
  CHECK(std::string(refused.status().message()).find("17 events") != std::string::npos);
}

TEST_CASE("a lone event that needs the kernel is read plainly", "[counter_set][law]") {
  const auto counter = Counter::Open(event::kCpuClock);
  REQUIRE(counter.ok());
  CHECK(counter->set().path(0) == ReadPath::kGroupRead);
  testing::Spin(1'000'000);
  Count count;
  REQUIRE(counter->Read(count));
  CHECK(count.value > 0);
  CHECK(count.time_running_ns == count.time_enabled_ns);
}

pid_t g_ending = 0;

// For members of groups thread g_ending is gone; for leaders it was still there.
int OpenAsItEnds(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  if (pid == g_ending && group != -1) return errno = ESRCH, -1;
  return sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
}

TEST_CASE("a thread that ends while a group is attached to all is left out", "[counter_set][target]") {
  std::atomic<bool> stop{false};
  std::atomic<pid_t> tid{0};
  std::thread ending([&] {
    tid = gettid();
    tid.notify_all();
    stop.wait(false);
  });
  tid.wait(0);
  g_ending = tid;
  testing::FakeKernel fake;
  fake.below().perf_event_open = OpenAsItEnds;
  const auto groups = ParseEventList("{page-faults,minor-faults}");
  REQUIRE(groups.ok());
  {
    const auto set = CounterSet::Open(*groups, Target::AllThreads());
    INFO(set.status().ToString());
    CHECK(set.ok());
    FreshPages memory(100);
    Snapshot begin, end;
    if (set.ok()) {
      set->Read(begin);
      memory.Touch(0, 100);
      set->Read(end);
      CHECK(set->Difference(begin, end, 0).value >= 100);
      CHECK(set->Difference(begin, end, 1).value >= 100);
    }
    CHECK(absl::IsNotFound(CounterSet::Open(*groups, Target::Thread(g_ending)).status()));
  }
  CHECK(fake.Leaks() == "");
  stop = true;
  stop.notify_all();
  ending.join();
}

TEST_CASE("a thread is counted without those that it starts", "[counter_set][target]") {
  std::atomic<pid_t> tid{0};
  std::atomic<int> step{0};
  uint64_t own = 0;
  const auto reach = [&](int next) {
    step = next;
    step.notify_all();
  };
  std::thread counted([&] {
    FreshPages memory(350);
    const testing::OtherFaults others;
    tid = gettid();
    tid.notify_all();
    step.wait(0);
    memory.Touch(300, 50);
    std::thread([&] { memory.Touch(0, 300); }).join();
    reach(2);
    step.wait(2);
    own = others.Beside(0);
  });
  tid.wait(0);
  const auto set = CounterSet::Open({event::kPageFaults}, Target::Thread(tid));
  Snapshot begin, end;
  if (set.ok()) set->Read(begin);
  reach(1);
  step.wait(1);
  if (set.ok()) set->Read(end);
  reach(3);
  counted.join();
  INFO(set.status().ToString());
  REQUIRE(set.ok());
  const Count count = set->Difference(begin, end, 0);
  CAPTURE(count.value, own);
  CHECK(count.value >= 50);
  CHECK(count.value <= own + (testing::kSanitized ? 100 : 0));
}

TEST_CASE("targets: another thread, this process's threads, the system", "[counter_set][target][law]") {
  SECTION("a thread that ended is not found") {
    CHECK(absl::IsNotFound(Counter::Open(event::kPageFaults, Target::Thread(1 << 22)).status()));
  }
  SECTION("all threads, those born later included") {
    const auto set = CounterSet::Open({event::kPageFaults}, Target::AllThreads());
    REQUIRE(set.ok());
    Snapshot begin, end;
    const testing::OtherFaults others(RUSAGE_SELF);
    set->Read(begin);
    FreshPages memory(300);
    pid_t tid = 0;
    std::thread([&] {
      tid = gettid();
      memory.Touch(0, 300);
    }).join();
    testing::AwaitEnd(tid);
    set->Read(end);
    const Count count = set->Difference(begin, end, 0);
    CHECK(count.value >= 300);
    CHECK(count.value <= 300 + others.Beside(300) + (testing::kSanitized ? 5000 : 0));
  }
  SECTION("the whole system, where permitted") {
    const auto set = CounterSet::Open({event::kContextSwitches}, Target::System());
    if (geteuid() == 0) {
      REQUIRE(set.ok());
      Snapshot begin, end;
      set->Read(begin);
      testing::SwitchAway(10);
      set->Read(end);
      CHECK(set->Difference(begin, end, 0).value >= 10);
    } else {
      CHECK(absl::IsPermissionDenied(set.status()));
    }
  }
}

}  // namespace
}  // namespace perfkit
