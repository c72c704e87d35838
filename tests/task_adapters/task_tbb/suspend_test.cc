// Work of TBB as tasks: jobs that are suspended, and continue on other threads.
#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <optional>
#include <random>
#include <thread>

#include "perfkit/task_tbb.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"
#include "tests/task_adapters/task_tbb/workers.h"

namespace perfkit {
namespace {

constexpr size_t kJobs = 200, kThreads = 4, kSuspensions = 3;

// Pages that a job touches between its suspensions, and what was counted for it.
struct Job {
  explicit Job(uint32_t seed) : random(seed), fresh((kSuspensions + 1) * 16) {}

  void TouchSome() {
    const size_t pages = random() % 16;
    fresh.Touch(touched, pages);
    touched += pages;
  }

  std::minstd_rand random;
  testing::FreshPages fresh;
  size_t touched = 0;
  TaskTotals totals{};
};

// The thread that lets suspended jobs continue: in another order than they were suspended in.
class Resumer {
 public:
  explicit Resumer(size_t suspensions) : thread_([this, suspensions] { Run(suspensions); }) {}
  ~Resumer() { thread_.join(); }

  void Add(oneapi::tbb::task::suspend_point point) { points_.push(point); }

 private:
  void Run(size_t left) {
    std::minstd_rand random(1);
    std::deque<oneapi::tbb::task::suspend_point> waiting;
    while (left != 0) {
      oneapi::tbb::task::suspend_point point = nullptr;
      while (points_.try_pop(point)) waiting.push_back(point);
      if (waiting.empty()) {
        std::this_thread::yield();
        continue;
      }
      std::swap(waiting[random() % waiting.size()], waiting.back());
      oneapi::tbb::task::resume(waiting.back());
      waiting.pop_back();
      --left;
    }
  }

  oneapi::tbb::concurrent_queue<oneapi::tbb::task::suspend_point> points_;
  std::thread thread_;  // Last: it uses the queue.
};

void RunJob(TaskCounter& tasks, TaskCounter::Task& task, Job& job, Resumer& resumer) {
  {
    PERFKIT_TASK_ZONE(tasks, "parts");
    for (size_t i = 0; i < kSuspensions; ++i) {
      job.TouchSome();
      SuspendTask(task, [&resumer](oneapi::tbb::task::suspend_point point) { resumer.Add(point); });
    }
  }
  job.TouchSome();
  const TaskPause pause(task);  // TaskTotals are those of the last switch.
  job.totals = task.totals();
}

// With an observer the threads' own accounts lie below those of the jobs.
void RunSuspendedJobs(bool observed) {
  TaskCounter tasks({.events = {"page-faults", "task-clock"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  std::deque<Job> jobs;
  for (size_t i = 0; i < kJobs; ++i) jobs.emplace_back(static_cast<uint32_t>(i + 1));
  const testing::OtherFaults of_all(RUSAGE_SELF);
  Workers workers(kThreads);
  {
    oneapi::tbb::task_arena arena(kThreads);
    std::optional<TaskArenaObserver> observer;
    if (observed) observer.emplace(tasks, arena, ZoneId{"arena"});
    Resumer resumer(kJobs * kSuspensions);
    arena.execute([&] {
      oneapi::tbb::task_group group;
      for (Job& job : jobs) {
        group.run(CountedJob(tasks, {"job"}, [&](TaskCounter::Task& task) { RunJob(tasks, task, job, resumer); }));
      }
      group.wait();
    });
    arena.terminate();
    workers.End();
  }
  uint64_t counted = 0, touched = 0, migrations = 0;
  size_t too_few = 0, runs = 0;
  for (const Job& job : jobs) {
    too_few += job.totals.counts[0].value < job.touched ? 1 : 0;
    counted += job.totals.counts[0].value;
    touched += job.touched;
    runs += job.totals.runs;
    migrations += job.totals.migrations;
  }
  CHECK(too_few == 0);
  CHECK(testing::AreFaultsOf(counted, touched, of_all.Beside(touched)));
  CHECK(runs == kJobs * (kSuspensions + 1));
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(zones.size() == (observed ? 3 : 2));
  const TaskZoneStats& job = zones[observed ? 1 : 0];
  CHECK(job.name == "job");
  CHECK(job.ended == kJobs);
  CHECK(job.migrations >= migrations);
  CHECK(job.total[0].value >= counted);
  const TaskStats stats = tasks.Stats();
  CHECK(stats.mismatched + stats.cross_thread + stats.dropped + stats.refused_threads == 0);
}

TEST_CASE("task tbb: jobs that are suspended have exactly their own faults", "[task]") { RunSuspendedJobs(false); }
TEST_CASE("task tbb: also in an arena that is observed", "[task]") { RunSuspendedJobs(true); }

// A job that waits for nested work pauses: its thread runs other jobs meanwhile, suspended ones too, and may be another
// one afterwards.
TEST_CASE("task tbb: a job that waits for nested jobs has exactly its own faults", "[task]") {
  constexpr size_t kOuter = 20, kPages = 40;
  Workers workers(kThreads);
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  std::deque<Job> inner;
  std::deque<testing::FreshPages> pages;
  std::array<uint64_t, kOuter> counted{};
  for (size_t i = 0; i < kOuter; ++i) pages.emplace_back(kPages);
  for (size_t i = 0; i < 4 * kOuter; ++i) inner.emplace_back(static_cast<uint32_t>(i + 1));
  oneapi::tbb::task_arena arena(kThreads);
  Resumer resumer(4 * kOuter * kSuspensions);
  arena.execute([&] {
    oneapi::tbb::task_group group;
    for (size_t i = 0; i < kOuter; ++i) {
      group.run(CountedJob(tasks, {"outer"}, [&, i](TaskCounter::Task& task) {
        pages[i].Touch(0, kPages / 2);
        {
          const TaskPause pause(task);
          oneapi::tbb::parallel_for(4 * i, 4 * i + 4, [&](size_t j) {
            CountedJob(tasks, {"inner"}, [&](TaskCounter::Task& own) { RunJob(tasks, own, inner[j], resumer); })();
          });
        }
        pages[i].Touch(kPages / 2, kPages / 2);
        const TaskPause pause(task);
        counted[i] = task.totals().counts[0].value;
      }));
    }
    group.wait();
  });
  arena.terminate();
  workers.End();
  for (const uint64_t faults : counted) CHECK(faults >= kPages);
  size_t too_few = 0;
  for (const Job& job : inner) too_few += job.totals.counts[0].value < job.touched ? 1 : 0;
  CHECK(too_few == 0);
  CHECK(tasks.Stats().mismatched + tasks.Stats().cross_thread == 0);
}

}  // namespace
}  // namespace perfkit
