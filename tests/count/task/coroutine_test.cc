// Coroutines as tasks: each suspension ends a part, on whichever thread the coroutine goes on.
#include <catch2/catch.hpp>
#include <coroutine>
#include <cstdlib>
#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "perfkit/task_coroutine.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// A coroutine that counts each of its co_awaits. Its first argument is its task.
struct Coroutine {
  struct promise_type : TaskPromise<promise_type> {
    template <class... Rest>
    explicit promise_type(TaskCounter::Task& own, Rest&...) : own_task(own) {}
    TaskCounter::Task& task() { return own_task; }

    Coroutine get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept {
      own_task.Suspend();
      return {};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }

    TaskCounter::Task& own_task;
  };

  // Starts it, on the calling thread.
  void Start() {
    handle.promise().task().Resume();
    handle.resume();
  }

  std::coroutine_handle<promise_type> handle;
};

// Leaves the coroutine suspended, for the thread that takes the handle.
struct Parked {
  std::coroutine_handle<>& handle;
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) { handle = coroutine; }
  int await_resume() { return 42; }
};

// The same, by way of an operator co_await.
struct ParkedByOperator {
  std::coroutine_handle<>& handle;
  Parked operator co_await() const { return {handle}; }
};

struct NotSuspending {
  bool await_ready() { return false; }
  bool await_suspend(std::coroutine_handle<>) { return false; }
  void await_resume() {}
};

#if defined(__cpp_exceptions)
struct Throwing {
  bool await_ready() { return false; }
  void await_suspend(std::coroutine_handle<>) { throw std::runtime_error("no"); }
  void await_resume() {}
};
#endif

void TouchInJob(size_t pages) { testing::FreshPages(pages).Touch(0, pages); }

Coroutine LoadLevel(TaskCounter::Task&, TaskCounter& tasks, std::coroutine_handle<>& parked, int& answer) {
  PERFKIT_TASK_ZONE(tasks, "load");
  TouchInJob(1000);
  answer = co_await Parked{parked};
  TouchInJob(500);
  co_await NotSuspending();
  co_await std::suspend_never();
  TouchInJob(200);
  answer += co_await ParkedByOperator{parked};
  TouchInJob(100);
#if defined(__cpp_exceptions)
  try {
    co_await Throwing();
  } catch (const std::runtime_error&) {
    ++answer;
  }
  TouchInJob(50);
#endif
}

TEST_CASE("task coroutine: its parts on several threads are its counts", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task task = tasks.Create({"level"});
  std::coroutine_handle<> parked;
  int answer = 0;
  Coroutine job = LoadLevel(task, tasks, parked, answer);
  const testing::OtherFaults of_all(RUSAGE_SELF);
  std::thread([&] { job.Start(); }).join();
  TouchInJob(77);
  CHECK(task.totals().runs == 1);
  std::thread([&] { parked.resume(); }).join();
  CHECK(answer == 42);
  CHECK(task.totals().runs == 3);  // NotSuspending is a short part of its own.
  parked.resume();
  CHECK(job.handle.done());
  size_t pages = 1800;
#if defined(__cpp_exceptions)
  CHECK(answer == 85);
  pages += 50;
#endif
  const uint64_t others = of_all.Beside(pages + 77);
  CHECK(testing::AreFaultsOf(task.totals().counts[0].value, pages, others));
  CHECK(task.totals().migrations == 2);
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(zones.size() == 2);
  CHECK(zones[1].name == "load");
  CHECK(zones[1].total[0].value >= pages);
  CHECK(tasks.Stats().mismatched + tasks.Stats().cross_thread == 0);
  job.handle.destroy();
}

TEST_CASE("task coroutine: one that is destroyed where it waits leaves its zones", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  TaskCounter::Task task = tasks.Create({"level"});
  std::coroutine_handle<> parked;
  int answer = 0;
  Coroutine job = LoadLevel(task, tasks, parked, answer);
  job.Start();
  std::thread([&] { job.handle.destroy(); }).join();
  { const TaskScope scope(task); }
  CHECK(task.totals().runs == 2);
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(zones.size() == 2);
  CHECK(zones[1].calls == 1);
  CHECK(tasks.Stats().mismatched + tasks.Stats().cross_thread == 0);
}

// A coroutine without the mixin wraps single awaiters, also ones that it goes on using.
struct PlainJob {
  struct promise_type {
    PlainJob get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
    std::suspend_never initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
  std::coroutine_handle<promise_type> handle;
};

PlainJob WaitOnce(TaskCounter::Task& task, Parked& awaiter) {
  const TaskScope scope(task);
  co_await Counted(task, awaiter);
}

TEST_CASE("task coroutine: an awaiter that is counted alone", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  TaskCounter::Task task = tasks.Create({"once"});
  std::coroutine_handle<> parked;
  Parked awaiter{parked};
  PlainJob job = WaitOnce(task, awaiter);
  CHECK(task.totals().runs == 1);
  std::thread([&] { parked.resume(); }).join();
  CHECK(task.totals().runs == 2);
  CHECK(job.handle.done());
  CHECK(tasks.Stats().mismatched + tasks.Stats().cross_thread == 0);
  job.handle.destroy();
}

// What is awaited has a task, or something of that name.
struct WithTask : Parked {
  TaskCounter::Task* own;
  TaskCounter::Task& task() { return *own; }
};
struct WithConstTask : NotSuspending {
  const TaskCounter::Task& task() const { return *own; }
  const TaskCounter::Task* own;
};
struct WithOtherTask : NotSuspending {
  std::string task() const { return "another meaning"; }
};
// An empty job: it is done, and has no task.
struct EmptyJob {
  TaskCounter::Task& task() { std::abort(); }
  bool await_ready() { return true; }
  void await_suspend(std::coroutine_handle<>) {}
  void await_resume() {}
};

PlainJob AwaitAll(TaskCounter::Task& task, TaskCounter::Task& other, std::coroutine_handle<>& parked) {
  const TaskScope scope(task);
  co_await Counted(task, EmptyJob());
  co_await Counted(task, WithConstTask{{}, &other});
  co_await Counted(task, WithOtherTask());
  co_await Counted(task, WithTask{{parked}, &other});
}

TEST_CASE("task coroutine: an awaiter's task is asked for when it is about to suspend", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  TaskCounter::Task task = tasks.Create({"awaits"}), other = tasks.Create({"awaited"});
  std::coroutine_handle<> parked;
  PlainJob job = AwaitAll(task, other, parked);
  parked.resume();
  CHECK(job.handle.done());
  CHECK(tasks.Stats().ended == 0);
  CHECK(tasks.Stats().mismatched + tasks.Stats().cross_thread == 0);
  job.handle.destroy();
}

}  // namespace
}  // namespace perfkit
