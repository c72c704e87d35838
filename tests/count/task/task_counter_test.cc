// TaskCounter against work of known size: tasks that stop and continue on other threads, zones that stay open, misuse.
#include "perfkit/task_counter.h"

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/allocations.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

void TouchTaskPages(size_t pages) { testing::FreshPages(pages).Touch(0, pages); }

// Runs a part of a task that touches `pages`, on a thread of its own. Returns the other faults of the part, at most.
uint64_t RunPart(TaskCounter::Task& task, size_t pages) {
  uint64_t others = 0;
  std::thread([&] {
    testing::FreshPages fresh(pages);
    const testing::OtherFaults of_thread;
    const TaskScope scope(task);
    fresh.Touch(0, pages);
    others = of_thread.Beside(pages);
  }).join();
  return others + 50;  // Those of the scope's own end.
}

const TaskZoneStats* FindZone(const std::vector<TaskZoneStats>& zones, std::string_view name) {
  for (const TaskZoneStats& zone : zones) {
    if (zone.name == name) return &zone;
  }
  return nullptr;
}

TEST_CASE("tasks: the parts of a task on several threads are its counts", "[task]") {
  TaskCounter tasks({.events = {"page-faults", "task-clock"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task task = tasks.Create({"walker"});
  uint64_t others = RunPart(task, 1000);
  others += RunPart(task, 500);
  const TaskTotals totals = task.totals();
  CHECK(totals.counts[0].validity.counted());
  CHECK(testing::AreFaultsOf(totals.counts[0].value, 1500, others));
  CHECK(totals.counts[1].value > 0);
  CHECK(totals.runs == 2);
  CHECK(totals.migrations == 1);
  CHECK(totals.run_ns > 0);
  CHECK(totals.wait_ns > 0);
  const TaskStats stats = tasks.Stats();
  CHECK(stats.created == 1);
  CHECK(stats.cross_thread + stats.mismatched + stats.dropped + stats.refused_threads == 0);
}

TEST_CASE("tasks: what is counted outside is in no task", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  REQUIRE(tasks.AttachThread());
  TaskCounter::Task task = tasks.Create({"short"});
  { const TaskScope warm(task); }
  const uint64_t before = task.totals().counts[0].value, outside_before = tasks.Outside().counts[0].value;
  const testing::OtherFaults of_all;
  TouchTaskPages(300);
  {
    const TaskScope scope(task);
    TouchTaskPages(200);
  }
  TouchTaskPages(100);
  { const TaskScope last(task); }
  const uint64_t others = of_all.Beside(600);
  CHECK(testing::AreFaultsOf(task.totals().counts[0].value - before, 200, others));
  CHECK(testing::AreFaultsOf(tasks.Outside().counts[0].value - outside_before, 400, others));
}

TEST_CASE("tasks: a task that resumes another is interrupted by it", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task outer = tasks.Create({"outer"}), inner = tasks.Create({"inner"}), third = tasks.Create({"third"});
  { const TaskScope warm(outer); }
  const uint64_t before = outer.totals().counts[0].value;
  const testing::OtherFaults of_all;
  outer.Resume();
  TouchTaskPages(100);
  inner.Resume();
  TouchTaskPages(200);
  TaskCounter::Switch(inner, third);
  TouchTaskPages(50);
  third.Suspend();
  TouchTaskPages(10);
  outer.Suspend();
  const uint64_t others = of_all.Beside(360);
  CHECK(testing::AreFaultsOf(outer.totals().counts[0].value - before, 110, others));
  CHECK(testing::AreFaultsOf(inner.totals().counts[0].value, 200, others));
  CHECK(testing::AreFaultsOf(third.totals().counts[0].value, 50, others));
  CHECK(outer.totals().runs == 2);
  CHECK(tasks.Stats().mismatched == 0);
}

TEST_CASE("tasks: a zone stays open while its task is suspended", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task task = tasks.Create({"job"});
  std::optional<TaskCounter::Zone> zone;
  const testing::OtherFaults of_all(RUSAGE_SELF);
  std::thread([&] {
    const TaskScope scope(task);
    zone.emplace(tasks, ZoneId{"load"});
    TouchTaskPages(1000);
  }).join();
  TouchTaskPages(70);
  std::thread([&] {
    const TaskScope scope(task);
    TouchTaskPages(500);
    {
      PERFKIT_TASK_ZONE(tasks, "parse");
      TouchTaskPages(100);
    }
    zone.reset();
    TouchTaskPages(30);
  }).join();
  const uint64_t others = of_all.Beside(1700);
  { PERFKIT_TASK_ZONE(tasks, "outside of tasks"); }
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(zones.size() == 3);
  CHECK((zones[0].name == "job" && zones[1].name == "load" && zones[2].name == "parse"));
  CHECK((zones[0].depth == 0 && zones[1].depth == 1 && zones[2].depth == 2));
  CHECK((zones[1].parent == 0 && zones[2].parent == 1));
  CHECK((zones[0].calls == 2 && zones[1].calls == 1 && zones[2].calls == 1));
  CHECK(testing::AreFaultsOf(zones[1].total[0].value, 1600, others));
  CHECK(testing::AreFaultsOf(zones[1].self[0].value, 1500, others));
  CHECK(testing::AreFaultsOf(zones[2].total[0].value, 100, others));
  CHECK(zones[0].total[0].value == zones[0].self[0].value + zones[1].total[0].value);
  CHECK(zones[0].run_ns == zones[0].self_run_ns + zones[1].run_ns);
  CHECK(zones[0].total[0].value == task.totals().counts[0].value);
}

TEST_CASE("tasks: a name has its tasks' sums and quantiles", "[task]") {
  TaskCounter tasks({.events = {"page-faults", "nonesuch"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  const std::string copy = "job";  // An equal name at another address.
  uint64_t sum = 0;
  for (size_t i = 0; i < 40; ++i) {
    TaskCounter::Task task = tasks.Create({i % 2 == 0 ? "job" : copy.c_str()});
    { const TaskScope scope(task); }
    {
      const TaskScope scope(task);
      TouchTaskPages(1000 + i);
    }
    sum += task.totals().counts[0].value;
  }
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(zones.size() == 1);
  CHECK(zones[0].total[0].value == sum);
  CHECK(zones[0].ended == 40);
  CHECK(zones[0].calls == 80);
  CHECK(zones[0].quantiles[0].count == 40);
  CHECK(zones[0].quantiles[0].p50 >= 1000);
  CHECK(zones[0].quantiles[0].max >= 1039);
  CHECK(zones[0].run_quantiles.count == 40);
  CHECK(zones[0].wait_quantiles.count == 40);
  CHECK(!zones[0].total[1].validity.counted());
  CHECK(zones[0].quantiles[1].count == 0);
  CHECK(!tasks.reason(1).empty());
  CHECK(tasks.Stats().ended == 40);
}

TEST_CASE("tasks: a task that another thread suspends has no number, and no other task gets it", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task below = tasks.Create({"below"}), strange = tasks.Create({"strange"});
  { const TaskScope warm(below); }
  const uint64_t before = below.totals().counts[0].value;
  const testing::OtherFaults of_all;
  below.Resume();
  strange.Resume();
  std::thread([&] { strange.Suspend(); }).join();
  TouchTaskPages(500);
  below.Suspend();
  const uint64_t others = of_all.Beside(500);
  CHECK(strange.totals().counts[0].validity.has(Validity::kOtherThread));
  CHECK(strange.totals().counts[0].value == 0);
  CHECK(!below.totals().counts[0].validity.counted());  // When it ran again is not known.
  CHECK(testing::AreFaultsOf(FindZone(tasks.zones(), "below")->total[0].value - before, 0, others));
  CHECK(tasks.Outside().counts[0].value >= 500);
  CHECK(tasks.Stats().cross_thread == 1);
  CHECK(tasks.Stats().mismatched == 0);

  std::thread([&] {  // Ended while it runs on this thread.
    TaskCounter::Task ended = std::move(below);
  })
      .join();
  TaskCounter::Task open = tasks.Create({"open"});
  open.Resume();
  std::thread([&] { TaskCounter::Task ended = std::move(open); }).join();
  CHECK(tasks.Stats().cross_thread == 2);
  TaskCounter::Task next = tasks.Create({"next"});
  { const TaskScope scope(next); }
  CHECK(next.totals().counts[0].validity.counted());
}

TEST_CASE("tasks: switches that do not fit are ignored and counted", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task one = tasks.Create({"one"}), two = tasks.Create({"two"}), none;
  one.Suspend();
  CHECK(tasks.Stats().mismatched == 1);
  one.Resume();
  one.Resume();
  CHECK(tasks.Stats().mismatched == 2);
  two.Resume();
  one.Suspend();
  CHECK(tasks.Stats().mismatched == 3);
  two.Suspend();
  one.Suspend();
  none.Resume();
  none.Suspend();
  TaskCounter::Switch(none, one);
  TaskCounter::Switch(one, none);
  CHECK(none.totals().runs == 0);
  CHECK(one.totals().runs == 2);
  CHECK(one.totals().counts[0].validity.counted());
  CHECK(tasks.Stats().mismatched == 3);
}

TEST_CASE("tasks: one that ends while another one interrupts it is no switch that does not fit", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task one = tasks.Create({"one"}), two = tasks.Create({"two"});
  one.Resume();
  two.Resume();
  { TaskCounter::Task ended = std::move(one); }
  CHECK(tasks.Stats().cross_thread == 1);
  CHECK(tasks.Stats().mismatched == 0);
  two.Suspend();
  CHECK(two.totals().counts[0].validity.counted());
}

TEST_CASE("tasks: a switch to a task of another counter counts in each", "[task]") {
  TaskCounter ones({.events = {"page-faults"}, .max_zones = 2}), others({.events = {"page-faults"}});
  if (!ones.reason(0).empty()) SKIP_TEST(std::string(ones.reason(0)));
  TaskCounter::Task one = ones.Create({"one"});
  std::vector<TaskCounter::Task> many;
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (int i = 0; i < 200; ++i) all.push_back("task " + std::to_string(i));
    return all;
  }();
  for (const std::string& name : names) many.push_back(others.Create({name.c_str()}));
  TaskCounter::Task& other = many.back();
  { const TaskScope warm(other); }
  const uint64_t before = other.totals().counts[0].value;
  one.Resume();
  const testing::OtherFaults beside;
  TaskCounter::Switch(one, other);
  TouchTaskPages(100);
  TaskCounter::Switch(other, one);
  const uint64_t faults = beside.Beside(100);
  one.Suspend();
  CHECK(testing::AreFaultsOf(other.totals().counts[0].value - before, 100, faults));
  CHECK(ones.Stats().cross_thread + ones.Stats().mismatched == 0);
  CHECK(others.Stats().cross_thread + others.Stats().mismatched == 0);
}

TEST_CASE("tasks: a wait is no longer than from the task's beginning", "[task][law]") {
  TaskCounter tasks({.events = {"page-faults"}, .max_threads = 1});
  REQUIRE(tasks.AttachThread());
  const uint64_t begin_ns = testing::NowNs();
  TaskCounter::Task crossed = tasks.Create({"crossed"}), next = tasks.Create({"next"});
  crossed.Resume();
  std::thread([&] { crossed.Suspend(); }).join();
  { const TaskScope scope(next); }
  crossed.Resume();
  crossed.Suspend();
  CHECK(crossed.totals().wait_ns <= testing::NowNs() - begin_ns);

  TaskCounter::Task refused = tasks.Create({"refused"});
  { const TaskScope scope(refused); }
  uint64_t ran_ns = 0;
  const uint64_t from_ns = testing::NowNs();
  std::thread([&] {
    refused.Resume();
    const uint64_t inner_ns = testing::NowNs();
    testing::Sleep(20'000'000);
    ran_ns = testing::NowNs() - inner_ns;
    refused.Suspend();
  }).join();
  { const TaskScope scope(refused); }
  CHECK(refused.totals().wait_ns <= (testing::NowNs() - from_ns - ran_ns) * 1.01 + 1000);  // by another clock
}

TEST_CASE("tasks: any number of zones may be asked for", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}, .max_zones = SIZE_MAX});
  TaskCounter::Task task = tasks.Create({"one"});
  { const TaskScope scope(task); }
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(FindZone(zones, "one") != nullptr);
  CHECK(FindZone(zones, "one")->calls == 1);
  for (const TaskZoneStats& zone : zones) CHECK(zone.calls <= 1);
}

TEST_CASE("tasks: too many threads, zones and names are told", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}, .max_threads = 1, .max_zones = 2});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task task = tasks.Create({"job"});
  task.Resume();
  {
    PERFKIT_TASK_ZONE(tasks, "first");
    PERFKIT_TASK_ZONE(tasks, "one too many");
    PERFKIT_TASK_ZONE(tasks, "in that");
  }
  task.Suspend();
  CHECK(tasks.Stats().dropped == 2);
  TaskCounter::Task more = tasks.Create({"more"});
  CHECK(tasks.Stats().dropped == 3);
  { const TaskScope scope(more); }
  CHECK(FindZone(tasks.zones(), "(more names)") != nullptr);
  CHECK(FindZone(tasks.zones(), "in that") == nullptr);
  std::thread([&] {
    CHECK(!tasks.AttachThread());
    for (int i = 0; i < 2; ++i) {
      const TaskScope scope(more);
    }
    CHECK(!more.totals().counts[0].validity.counted());
  }).join();
  CHECK(tasks.Stats().refused_threads == 1);
  CHECK(tasks.Stats().mismatched == 0);
  CHECK(task.totals().counts[0].validity.counted());
}

TEST_CASE("tasks: after the first, switches and zones do not allocate", "[task]") {
  TaskCounter tasks({.events = {"page-faults", "task-clock"}});
  TaskCounter::Task one = tasks.Create({"one"}), two = tasks.Create({"two"});
  TaskCounter::Task ending = tasks.Create({"one"});
  const auto run = [&] {
    one.Resume();
    {
      PERFKIT_TASK_ZONE(tasks, "zone");
      TaskCounter::Switch(one, two);
      TaskCounter::Switch(two, one);
    }
    one.Suspend();
  };
  run();
  const uint64_t before = testing::allocations_so_far;
  for (int i = 0; i < 1000; ++i) run();
  { const TaskCounter::Task ended = std::move(ending); }
  CHECK(testing::allocations_so_far - before == 0);
  // Its memory serves the next task.
  const uint64_t created = testing::allocations_so_far;
  ending = tasks.Create({"two"});
  CHECK(testing::allocations_so_far - created == 0);
}

TEST_CASE("tasks: a thread that ends suspends its tasks, and its counts stay", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task task = tasks.Create({"left open"});
  std::thread([&] {
    task.Resume();
    TouchTaskPages(400);
  }).join();
  CHECK(tasks.Stats().threads == 0);
  CHECK(task.totals().counts[0].value >= 400);
  const uint64_t first = task.totals().counts[0].value;
  CHECK(tasks.zones()[0].total[0].value == first);
  const uint64_t others = RunPart(task, 100);
  CHECK(testing::AreFaultsOf(task.totals().counts[0].value - first, 100, others));
  CHECK(task.totals().migrations == 1);
}

TEST_CASE("tasks: nothing is counted in the child of a fork", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task task = tasks.Create({"parent's"});
  task.Resume();
  const pid_t child = fork();
  if (child == 0) {
    task.Suspend();
    TaskCounter::Task own = tasks.Create({"child's"});
    own.Resume();
    own.Suspend();
    const bool none = !task.totals().counts[0].validity.counted() && !own.totals().counts[0].validity.counted() &&
                      !tasks.AttachThread();
    _exit(none ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  task.Suspend();
  CHECK(task.totals().counts[0].validity.counted());
}

}  // namespace
}  // namespace perfkit
