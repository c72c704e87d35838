// Counter sets on the live kernel, held against work of known cost and against getrusage.
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/scope.h"
#include "tests/count/sets.h"
#include "tests/support/as_user.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::AsOrdinaryUser;
using testing::FreshPages;

TEST_CASE("four software events are read without the kernel", "[counter_set]") {
  const CounterSet set = MustOpen(kFour);
  REQUIRE(set.size() == 4);
  CHECK(set.path(0) == ReadPath::kThreadClock);
  CHECK(set.path(1) == ReadPath::kRing);
  CHECK(set.path(2) == ReadPath::kRing);
  CHECK(set.name(1) == "page-faults");
}

// Each event of its own, with a context of several, costs a thread more at each switch: bench/count/switch_cases.cc.
TEST_CASE("events that are read without the kernel are one group of it", "[counter_set]") {
  static int alone, in_group;
  alone = in_group = 0;
  testing::FakeKernel fake;
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group,
                                    unsigned long flags) {
    const int fd = sys::kLinux.perf_event_open(attr, pid, cpu, group, flags);
    if (fd >= 0) ++(group < 0 ? alone : in_group);
    return fd;
  };
  const CounterSet set = MustOpen(kFour);
  CHECK(alone == 1);
  CHECK(in_group >= 1);  // 2 if this user may have migrations by the kernel, not by records of switches.
}

// The kernel schedules a member of another PMU in with the whole group: PerfGroup::Settle. A switch would do that, so
// rounds with one say nothing.
TEST_CASE("events count from the beginning, in any order, before the first switch of their thread",
          "[counter_set][law]") {
  std::vector<EventSpec> events = kFour;
  CounterOptions options;
  options.self_test = false;  // It waits for a switch.
  FreshPages memory(50);
  const bool by_prctl = GENERATE(false, true);  // Which enables one event after the other.
  std::array<int, 4> order = {0, 1, 2, 3};
  int tried = 0;
  do {
    for (size_t i = 0; i < order.size(); ++i) events[i] = kFour[static_cast<size_t>(order[i])];
    CAPTURE(order, by_prctl);
    const auto at = [&](int which) { return static_cast<size_t>(std::ranges::find(order, which) - order.begin()); };
    for (int round = 0; round < 20; ++round) {
      const uint64_t switches = testing::SwitchesByUsage();
      const CounterSet set = MustOpen(events, options);
      if (by_prctl) {
        prctl(PR_TASK_PERF_EVENTS_DISABLE);
        prctl(PR_TASK_PERF_EVENTS_ENABLE);
      }
      Snapshot begin, end;
      memory.Forget();
      const testing::OtherFaults others;
      set.Read(begin);
      const uint64_t begun_ns = testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
      memory.Touch(0, 50);
      testing::Spin(100'000);
      const uint64_t ended_ns = testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
      set.Read(end);
      if (testing::SwitchesByUsage() != switches) continue;
      ++tried;
      CHECK(testing::AreFaultsOf(set.Difference(begin, end, at(1)).value, 50, others.Beside(50)));
      // Perf's clock has what a host takes, too.
      CHECK(set.Difference(begin, end, at(0)).value + 10'000 >= ended_ns - begun_ns);
      break;
    }
  } while (std::ranges::next_permutation(order).found);
  CHECK(tried > 0);
}

TEST_CASE("faults that the program takes equal the pages that it touches", "[counter_set]") {
  FreshPages memory(4096);
  const std::array events = {EventSpec(event::kPageFaults)};
  for (const ReadPath path : {ReadPath::kRing, ReadPath::kGroupRead}) {
    const CounterSet set = MustOpen(events, Only(path));
    Snapshot begin, end;
    set.Read(begin);  // the first read may fault in what it touches itself
    for (const size_t pages : {0, 1, 7, 256, 3832}) {
      memory.Forget();
      const testing::OtherFaults others;
      set.Read(begin);
      memory.Touch(0, pages);
      set.Read(end);
      const Count count = set.Difference(begin, end, 0);
      CHECK(count.validity.counted());
      CHECK(testing::AreFaultsOf(count.value, pages, others.Beside(pages)));
      CHECK(count.coverage() == 1.0);
    }
  }
}

TEST_CASE("faults of an ordinary user are counted, and said to be the user's own", "[counter_set]") {
  CHECK(AsOrdinaryUser([] {
    FreshPages memory(100);
    auto set = CounterSet::Open(kFour);
    if (!set.ok()) return false;
    Snapshot begin, end;
    set->Read(end);  // both snapshots are written to: a child's pages are copied at the first write
    const testing::OtherFaults others;
    set->Read(begin);
    memory.Touch(0, 100);
    set->Read(end);
    const Count faults = set->Difference(begin, end, 1);
    return testing::AreFaultsOf(faults.value, 100, others.Beside(100)) &&
           (geteuid() != testing::OrdinaryUid() || faults.validity.has(Validity::kUserOnly));
  }));
}

// Random work between snapshots; what the set says must be what getrusage says, each time.
bool SwitchesAgree(int scopes) {
  auto set = CounterSet::Open(kFour);
  if (!set.ok()) return false;
  std::mt19937 random(7);
  int wrong = 0;
  for (int i = 0; i < scopes; ++i) {
    Snapshot begin, end;
    const std::optional<uint64_t> before = SwitchesAt(*set, begin);
    switch (random() % 64) {
      case 0: testing::Sleep(1); break;
      case 1: sched_yield(); break;
      default: testing::Spin(random() % 300); break;
    }
    const std::optional<uint64_t> after = SwitchesAt(*set, end);
    if (!before || !after) return false;
    wrong += set->Difference(begin, end, 2).value != *after - *before;
  }
  return wrong == 0;
}

TEST_CASE("switches of random scopes are getrusage's, exactly", "[counter_set][slow][law]") {
  CHECK(SwitchesAgree(testing::kSanitized ? 10'000 : 100'000));
}

TEST_CASE("switches of an ordinary user are true, where perf's own event stays 0", "[counter_set][law]") {
  CHECK(AsOrdinaryUser([] { return SwitchesAgree(20'000); }));
}

TEST_CASE("a scope without a switch says so, one with a switch does too", "[counter_set][law]") {
  const CounterSet set = MustOpen(kFour);
  Snapshot begin, end;
  uint64_t quiet = 0;
  const uint64_t switched = testing::SwitchesByUsage();
  for (int i = 0; i < 1000; ++i) {
    set.Read(begin);
    set.Read(end);
    const Count switches = set.Difference(begin, end, 2);
    if (!switches.validity.has(Validity::kSwitched)) {
      CHECK(switches.value == 0);
      ++quiet;
    }
  }
  CHECK(quiet + testing::SwitchesByUsage() - switched >= 1000);
  set.Read(begin);
  testing::SwitchAway();
  set.Read(end);
  CHECK(set.Difference(begin, end, 2).value >= 1);
  CHECK(set.Difference(begin, end, 2).validity.has(Validity::kSwitched));
}

bool MigrationsAreCounted() {
  auto set = CounterSet::Open(kFour);
  if (!set.ok()) return false;
  cpu_set_t before;
  sched_getaffinity(0, sizeof(before), &before);
  if (CPU_COUNT(&before) < 2) return true;
  bool exact = true;
  const auto pin = [](int cpu) {
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(cpu, &only);
    return sched_setaffinity(0, sizeof(only), &only) == 0;
  };
  pin(0);
  Snapshot begin, end;
  set->Read(begin);
  for (int moves = 1; moves <= 20; ++moves) {
    if (!pin(moves & 1)) return false;
    set->Read(end);
    exact = exact && set->Difference(begin, end, 3).value == static_cast<uint64_t>(moves);
  }
  exact = exact && !set->Difference(begin, end, 3).validity.has(Validity::kMigrated);  // 20 moves: back on CPU 0
  sched_setaffinity(0, sizeof(before), &before);
  return exact;
}

TEST_CASE("migrations are exact, for root and for an ordinary user", "[counter_set]") {
  CHECK(MigrationsAreCounted());
  CHECK(AsOrdinaryUser(MigrationsAreCounted));
}

TEST_CASE("the inline clock is the thread's task clock", "[counter_set][law]") {
  const CounterSet fast = MustOpen(std::array{EventSpec(event::kTaskClock)});
  const CounterSet slow = MustOpen(std::array{EventSpec(event::kTaskClock)}, Only(ReadPath::kGroupRead));
  Snapshot fast_begin, fast_end, slow_begin, slow_end;
  for (int i = 0; i < 50; ++i) {
    const uint64_t first = testing::NowNs();
    slow.Read(slow_begin);
    fast.Read(fast_begin);
    const uint64_t begun = testing::NowNs();
    testing::Spin(200'000);
    if (i % 5 == 0) testing::Sleep(200'000);
    const uint64_t ended = testing::NowNs();
    fast.Read(fast_end);
    slow.Read(slow_end);
    const auto between_reads = static_cast<double>(begun - first + testing::NowNs() - ended);
    const auto inner = static_cast<double>(fast.Difference(fast_begin, fast_end, 0).value);
    const auto outer = static_cast<double>(slow.Difference(slow_begin, slow_end, 0).value);
    CHECK(inner <= outer + 3'000);
    CHECK(inner >= outer - between_reads - 10'000);  // what was stolen there is on the wall's clock, too
  }
}

TEST_CASE("the inline clock never goes back", "[counter_set][law]") {
  const CounterSet set = MustOpen(kFour);
  Snapshot now;
  uint64_t last = 0;
  for (int i = 0; i < 300'000; ++i) {
    set.Read(now);
    REQUIRE(now.values[0] >= last);
    last = now.values[0];
    if (i % 5000 == 0) testing::Sleep(1);
  }
}

TEST_CASE("every set of paths tells the same story", "[counter_set][law]") {
  FreshPages memory(512);
  const CounterSet inline_set = MustOpen(kFour);
  const CounterSet group = MustOpen(kByKernel, Only(ReadPath::kGroupRead));
  const std::array usable = {EventSpec(event::kTaskClock), EventSpec(event::kPageFaults),
                             EventSpec(event::kContextSwitches)};
  const CounterSet usage = MustOpen(usable, Only(ReadPath::kUsage));
  CHECK(usage.path(1) == ReadPath::kUsage);
  ScopeTotals totals[3];
  const testing::OtherFaults others;
  {
    CounterScope a(inline_set, totals[0]);
    CounterScope b(group, totals[1]);
    CounterScope c(usage, totals[2]);
    memory.Touch(0, 512);
    testing::SwitchAway(10);
  }
  const uint64_t beside = others.Beside(512);
  CHECK(testing::AreFaultsOf(totals[0].count(inline_set, 1).value, 512, beside));
  CHECK(testing::AreFaultsOf(totals[1].count(group, 1).value, 512, beside));
  CHECK(testing::AreFaultsOf(totals[2].count(usage, 1).value, 512, beside));
  CHECK(totals[0].count(inline_set, 2).value >= 10);
  CHECK(totals[2].count(usage, 2).value >= 10);
}

TEST_CASE("another thread gets no number, and is told so", "[counter_set]") {
  const CounterSet set = MustOpen(kFour);
  Snapshot begin, end;
  set.Read(begin);
  std::thread([&] { set.Read(end); }).join();
  const Count count = set.Difference(begin, end, 1);
  CHECK_FALSE(count.validity.counted());
  CHECK(count.validity.has(Validity::kOtherThread));
  CHECK(count.scaled() == std::nullopt);
  CHECK(count.coverage() == 0);
  CHECK(set.Difference(end, begin, 1).validity == Validity{Validity::kOtherThread});  // It begins there.
}

TEST_CASE("a later thread at the same address is not taken for the one that was counted", "[counter_set]") {
  // glibc gives a new thread the stack, and so the address, of one that has ended.
  int reused = 0;
  for (const auto& options : {CounterOptions{}, Only(ReadPath::kGroupRead), Only(ReadPath::kUsage)}) {
    std::optional<CounterSet> set;
    Snapshot begin, end;
    void* first = nullptr;
    void* second = nullptr;
    std::thread([&] {
      set = MustOpen(std::array{EventSpec(event::kTaskClock), EventSpec(event::kPageFaults)}, options);
      set->Read(begin);
      first = __builtin_thread_pointer();
    }).join();
    std::thread([&] {
      set->Read(end);
      second = __builtin_thread_pointer();
    }).join();
    reused += first == second;
    CHECK(set->Difference(begin, end, 0).validity == Validity{Validity::kOtherThread});
    CHECK(set->Difference(begin, end, 1).validity == Validity{Validity::kOtherThread});
  }
  CHECK(reused > 0);
}

TEST_CASE("serial numbers of threads are never given twice", "[counter_set]") {
  std::set<uint64_t> seen;
  for (int i = 0; i < 500; ++i) {
    std::thread([&] {
      CHECK(seen.insert(ThreadSerial()).second);
      CHECK(ThreadSerial() == ThreadSerial());
    }).join();
  }
  CHECK(seen.count(0) == 0);
}

TEST_CASE("a group read knows its epochs: unchanged proves that there was no switch", "[counter_set][law]") {
  const CounterSet set = MustOpen(kByKernel, Only(ReadPath::kGroupRead));
  Snapshot begin, end;
  uint64_t quiet = 0;
  const uint64_t switched = testing::SwitchesByUsage();
  for (int i = 0; i < 200; ++i) {
    set.Read(begin);
    set.Read(end);
    quiet += !CounterReader::SharedValidity(begin, end).has(Validity::kSwitched);
  }
  CHECK(quiet + testing::SwitchesByUsage() - switched >= 200);
  testing::SwitchAway();
  set.Read(end);
  CHECK(CounterReader::SharedValidity(begin, end).has(Validity::kSwitched));
}

TEST_CASE("without a page nothing proves that there was no switch", "[counter_set]") {
  const CounterSet set = MustOpen(std::array{EventSpec(event::kPageFaults)}, Only(ReadPath::kUsage));
  Snapshot begin, end;
  set.Read(begin);
  set.Read(end);
  CHECK(CounterReader::SharedValidity(begin, end).has(Validity::kSwitched));
}

TEST_CASE("a clock is never called user-only: it runs in the kernel too", "[counter_set]") {
  CounterOptions options = Only(ReadPath::kGroupRead);
  options.user_only = true;
  const CounterSet set = MustOpen(kByKernel, options);
  CHECK_FALSE(set.fixed_flags(0).has(Validity::kUserOnly));
  CHECK(set.fixed_flags(1).has(Validity::kUserOnly));
  CHECK_FALSE(set.fixed_flags(3).has(Validity::kUserOnly));
}

}  // namespace
}  // namespace perfkit
