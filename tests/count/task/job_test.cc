// Jobs of queues of functions, as tasks.
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "perfkit/task_job.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// A thread pool as many programs have one.
class JobQueue {
 public:
  void Push(std::function<void()> job) {
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs_.push_back(std::move(job));
  }
  std::function<void()> Take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (jobs_.empty()) return {};
    std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    return job;
  }

 private:
  std::mutex mutex_;
  std::deque<std::function<void()>> jobs_;
};

// Pages that one job touches, and what it was found to have touched then.
struct PagesOfJob {
  explicit PagesOfJob(size_t pages) : fresh(pages) {}
  testing::FreshPages fresh;
  uint64_t counted = 0;
};

TEST_CASE("task job: what jobs of a pool count is what they do", "[task]") {
  constexpr size_t kJobs = 300, kThreads = 4;
  TaskCounter tasks({.events = {"page-faults", "task-clock"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  std::minstd_rand random(1);
  std::deque<PagesOfJob> pages;
  JobQueue queue;
  uint64_t touched = 0;
  for (size_t i = 0; i < kJobs; ++i) {
    PagesOfJob& own = pages.emplace_back(1 + random() % 16);
    touched += own.fresh.pages();
    queue.Push(CountedJob(tasks, {"job"}, [&own](TaskCounter::Task& task) {
      own.fresh.Touch(0, own.fresh.pages());
      task.Suspend();
      own.counted = task.totals().counts[0].value;
      task.Resume();
    }));
  }
  const testing::OtherFaults of_all(RUSAGE_SELF);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&queue] {
      while (const std::function<void()> job = queue.Take()) job();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const uint64_t others = of_all.Beside(touched);
  size_t too_few = 0;
  uint64_t counted = 0;
  for (const PagesOfJob& own : pages) {
    too_few += own.counted < own.fresh.pages() ? 1 : 0;
    counted += own.counted;
  }
  CHECK(too_few == 0);
  CHECK(testing::AreFaultsOf(counted, touched, others));
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(zones.size() == 1);
  CHECK(zones[0].created == kJobs);
  CHECK(zones[0].ended == kJobs);
  CHECK(zones[0].wait_quantiles.count == kJobs);
  CHECK(tasks.Stats().mismatched + tasks.Stats().cross_thread == 0);
}

// The bounds are the clock's readings before and after: the queue and the job's own pause.
TEST_CASE("task job: it waits from its construction to its call, and in its pauses", "[task][law]") {
  using Clock = std::chrono::steady_clock;
  TaskCounter tasks({.events = {"page-faults"}});
  TaskCounter::Task* own = nullptr;
  const Clock::time_point begin = Clock::now();
  const auto job = CountedJob(tasks, {"job"}, [&own](TaskCounter::Task& task, long pause_ns) {
    const TaskPause pause(task);
    own = &task;
    testing::Sleep(pause_ns);
    return 42;
  });
  testing::Sleep(20'000'000);
  int answer = 0;
  std::thread([&] { answer = job(10'000'000); }).join();
  CHECK(answer == 42);
  const auto wait = std::chrono::nanoseconds(own->totals().wait_ns);
  CHECK(wait <= (Clock::now() - begin) * 1.01);
  CHECK(wait >= std::chrono::milliseconds(29));
  CHECK(own->totals().runs == 2);
}

// A function that can only be moved, and whose result is a reference.
struct MoveOnly {
  std::unique_ptr<int> number;
  int& operator()() const { return *number; }
};

TEST_CASE("task job: it holds what cannot be copied, and returns what that returns", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  int* inside = nullptr;
  {
    auto job = CountedJob(tasks, {"job"}, MoveOnly{std::make_unique<int>(7)});
    const std::function<int&()> copy = job;
    inside = &job();
    CHECK(&copy() == inside);
    CHECK(tasks.Stats().ended == 0);
  }
  CHECK(tasks.Stats().ended == 1);
  CHECK(tasks.zones()[0].calls == 2);
  // Given to a task without an account, it only calls.
  TaskCounter::Task none;
  none.Enqueue();
  { const TaskPause pause(none); }
}

#if defined(__cpp_exceptions)
TEST_CASE("task job: one that throws is suspended", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  const auto job = CountedJob(tasks, {"job"}, [] { throw 1; });
  CHECK_THROWS_AS(job(), int);
  CHECK_THROWS_AS(job(), int);
  CHECK(tasks.zones()[0].calls == 2);
  CHECK(tasks.Stats().mismatched == 0);
}
#endif

TEST_CASE("task job: to enqueue a task that has run has no effect", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  TaskCounter::Task task = tasks.Create({"task"});
  task.Resume();
  task.Enqueue();
  task.Suspend();
  CHECK(task.totals().wait_ns == 0);
  TaskCounter::Task next = tasks.Create({"task"});  // Perhaps the memory of an ended one.
  next.Resume();
  next.Suspend();
  CHECK(next.totals().wait_ns == 0);
}

}  // namespace
}  // namespace perfkit
