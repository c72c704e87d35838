// The law of tasks: what each has counted is what it did, and the tasks and the rest are what the threads have counted.
#include "tests/count/task/random_tasks.h"

#include <memory>

#include "src/count/task/task_counter_impl.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

// Runs parts of random tasks until all are done.
void WorkOnTasks(TaskCounter& tasks, TaskQueue& queue, std::atomic<size_t>& left, TouchedPages& pages, unsigned seed) {
  constexpr size_t kPages = 16;
  testing::FreshPages fresh(kPages);
  std::minstd_rand random(seed);
  const testing::OtherFaults of_thread;
  uint64_t in_tasks = 0, outside = 0;
  while (left != 0) {
    RandomTask* const task = queue.Take(random);
    if (task == nullptr) continue;
    const size_t touch = random() % (kPages / 2), in_zone = random() % (kPages / 4), after = random() % (kPages / 4);
    fresh.Forget();
    task->task.Resume();
    fresh.Touch(0, touch);
    {
      PERFKIT_TASK_ZONE(tasks, "zone");
      fresh.Touch(touch, in_zone);
    }
    task->task.Suspend();
    fresh.Touch(touch + in_zone, after);
    task->touched += touch + in_zone;
    in_tasks += touch + in_zone;
    outside += after;
    if (--task->parts_left == 0) {
      --left;
    } else {
      queue.Put(task);
    }
  }
  pages.in_tasks += in_tasks;
  pages.outside += outside;
  pages.others += of_thread.Beside(in_tasks + outside);
}

void RunRandomTasks(size_t count, size_t threads, uint64_t parts) {
  TaskCounter tasks({.events = {"page-faults", "task-clock", "context-switches"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  std::deque<RandomTask> all(count);
  TaskQueue queue;
  for (size_t i = 0; i < count; ++i) {
    all[i].task = tasks.Create({i % 2 == 0 ? "even" : "odd"});
    all[i].parts_left = parts;
    queue.Put(&all[i]);
  }
  std::atomic<size_t> left{count};
  TouchedPages pages;
  std::vector<std::thread> workers;
  for (size_t t = 0; t < threads; ++t) {
    workers.emplace_back([&, t] { WorkOnTasks(tasks, queue, left, pages, static_cast<unsigned>(t + 1)); });
  }
  for (std::thread& worker : workers) worker.join();
  CheckFaults(all, pages);

  // Exactly: the names are the sums of their tasks, for every event.
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(zones.size() == 4);
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks.reason(i).empty()) continue;
    uint64_t of_tasks = 0, of_names = 0;
    for (const RandomTask& task : all) of_tasks += task.task.totals().counts[i].value;
    for (const TaskZoneStats& zone : zones) of_names += zone.self[i].value;
    CHECK(of_tasks == of_names);
  }
  CHECK(tasks.Outside().counts[0].value >= pages.outside);
  const TaskStats stats = tasks.Stats();
  CHECK(stats.cross_thread + stats.mismatched + stats.dropped + stats.refused_threads == 0);
}

TEST_CASE("tasks: random parts on several threads have exactly their own faults", "[task]") {
  RunRandomTasks(500, 4, 10);
}

TEST_CASE("tasks: many random parts on several threads have exactly their own faults", "[task][.heavy]") {
  RunRandomTasks(100'000, 8, 10);
}

// Every number of a thread is some task's, or outside: compared with the difference of the thread's first and last
// snapshot.
TEST_CASE("tasks: the tasks and the rest are what the thread has counted", "[task]") {
  TaskOptions options{.events = {"page-faults", "task-clock", "context-switches", "cpu-migrations", "nonesuch"}};
  const auto tasks = std::make_shared<count::TaskCounterImpl>(options);
  count::TaskThread* const thread = tasks->Attach();
  REQUIRE(thread != nullptr);
  std::vector<count::TaskAccount*> accounts;
  for (int i = 0; i < 5; ++i) accounts.push_back(tasks->Create({"task"}));
  std::minstd_rand random(1);
  std::vector<count::TaskAccount*> open;  // Innermost last.
  for (int i = 0; i < 20'000; ++i) {
    count::TaskAccount* const any = accounts[random() % accounts.size()];
    if (!any->is_open()) {
      if (!open.empty() && random() % 2 == 0) {
        tasks->Switch(*open.back(), *any);
        open.back() = any;
      } else {
        tasks->Resume(*any);
        open.push_back(any);
      }
    } else if (any == open.back()) {
      tasks->Suspend(*any);
      open.pop_back();
    }
    if (count::TaskAccount* const inside = tasks->EnterZone({"zone"}); inside != nullptr) {
      if (random() % 100 == 0) testing::FreshPages(3).Touch(0, 3);
      tasks->LeaveZone(*inside);
    }
  }
  for (; !open.empty(); open.pop_back()) tasks->Suspend(*open.back());
  const std::vector<TaskZoneStats> zones = tasks->Zones();
  const TaskTotals outside = tasks->Outside();
  for (size_t i = 0; i < tasks->plan().size(); ++i) {
    if (!tasks->plan().reason(i).empty()) continue;
    uint64_t of_tasks = 0, of_zones = 0;
    for (const count::TaskAccount* account : accounts) of_tasks += tasks->TotalsOf(*account).counts[i].value;
    for (const TaskZoneStats& zone : zones) of_zones += zone.self[i].value;
    CHECK(of_tasks == of_zones);
    if (!outside.counts[i].validity.counted()) continue;  // Migrations have a gap after too many switches.
    CHECK(of_tasks + outside.counts[i].value == thread->last().values[i] - thread->first().values[i]);
  }
  for (count::TaskAccount* account : accounts) tasks->End(*account);
  CHECK(tasks->Stats().mismatched == 0);
  tasks->Close();
  count::Unbind(tasks.get(), false);
}

}  // namespace
}  // namespace perfkit
