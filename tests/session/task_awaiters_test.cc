// The chain of awaiting tasks in a session's profile.
#include <algorithm>
#include <catch2/catch.hpp>
#include <coroutine>
#include <exception>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "perfkit/task_coroutine.h"
#include "tests/session/support.h"
#include "tests/session/task_profiles.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

// A coroutine that is a task of its own, and that another one can await.
class AwaitedJob {
 public:
  struct promise_type : TaskPromise<promise_type> {
    template <class... Rest>
    promise_type(TaskCounter& tasks, const char* name, Rest&...) : own_task(tasks.Create({name})) {}
    TaskCounter::Task& task() { return own_task; }

    AwaitedJob get_return_object() { return AwaitedJob(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() { return {}; }
    auto final_suspend() noexcept {
      struct ToAwaiter {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> done) noexcept {
          return done.promise().awaiter;
        }
        void await_resume() noexcept {}
      };
      own_task.Suspend();
      return ToAwaiter{};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }

    TaskCounter::Task own_task;
    std::coroutine_handle<> awaiter = std::noop_coroutine();
  };

  AwaitedJob(AwaitedJob&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  AwaitedJob& operator=(AwaitedJob&&) = delete;
  ~AwaitedJob() {
    if (handle_) handle_.destroy();
  }

  TaskCounter::Task& task() const { return handle_.promise().own_task; }
  void Start() {
    task().Resume();
    handle_.resume();
  }

  bool await_ready() const { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> awaiter) {
    handle_.promise().awaiter = awaiter;
    task().Resume();
    return handle_;
  }
  void await_resume() const {}

 private:
  explicit AwaitedJob(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

AwaitedJob Read(TaskCounter& tasks, const char*, size_t faults) {
  PERFKIT_TASK_ZONE(tasks, "parse");
  Fault(faults);
  co_return;
}

AwaitedJob Load(TaskCounter& tasks, const char*) {
  Fault(20);
  {
    PERFKIT_TASK_ZONE(tasks, "meshes");
    co_await Read(tasks, "read", 30);
    Fault(40);
  }
  co_await Read(tasks, "read", 50);
}

AwaitedJob PlayLevel(TaskCounter& tasks, const char*) {
  co_await Load(tasks, "load");
  Fault(60);
}

TEST_CASE("samples of a coroutine show which coroutines await it", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  AwaitedJob level = PlayLevel(tasks, "level");
  std::thread([&] { level.Start(); }).join();
  AwaitedJob alone = Read(tasks, "read", 70);
  alone.Start();
  const Profile profile = ProfileOf(session);
  std::map<std::string, uint64_t> weights = WeightsByTask(profile);
  // The law holds without losses, and with what else faults in there.
  for (const auto& [task, weight] : weights) INFO(task << ": " << weight);
  CHECK(std::ranges::any_of(profile.task_parts, [&](const ProfileTaskPart& part) {
    return profile.strings[part.task] == "level > load/meshes > read/parse" && profile.strings[part.name] == "read";
  }));
  if (profile.events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  CHECK(weights["level > load"] >= 20);
  CHECK(weights["level > load/meshes > read/parse"] >= 30);
  CHECK(weights["level > load/meshes"] >= 40);
  CHECK(weights["level > load > read/parse"] >= 50);
  CHECK(weights["level"] >= 60);
  CHECK(weights["read/parse"] >= 70);
}

TEST_CASE("a task that is awaited by none any more is shown alone", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}}), others({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  TaskCounter::Task job = tasks.Create({"job"}), first = tasks.Create({"first"}), second = tasks.Create({"second"});
  const TaskCounter::Task other = others.Create({"other"});
  const auto run = [&] {
    const TaskScope scope(job);
    Fault(10);
  };
  job.SetAwaiter(first);
  run();
  job.SetAwaiter(second);
  run();
  job.SetAwaiter(other);  // of another TaskCounter
  run();
  job.SetAwaiter(first);
  job.SetAwaiter(job);
  run();
  job.SetAwaiter(first);
  job.SetAwaiter({});
  run();
  const Profile profile = ProfileOf(session);
  if (profile.events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  std::map<std::string, uint64_t> weights = WeightsByTask(profile);
  CHECK((weights["first > job"] >= 20 && weights["second > job"] >= 10));
  // A task that awaits itself changes nothing.
  CHECK(weights["job"] >= 20);
  CHECK(weights.count("other > job") + weights.count("job > job") == 0);
}

TEST_CASE("tasks that await each other deeply are shown as far as there is room", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  std::vector<TaskCounter::Task> jobs;
  for (int depth = 0; depth < 1000; ++depth) {
    jobs.push_back(tasks.Create({"deep"}));
    if (depth > 0) jobs[jobs.size() - 1].SetAwaiter(jobs[jobs.size() - 2]);
    const TaskScope scope(jobs.back());
    Fault(1);
  }
  const Profile profile = ProfileOf(session);
  if (profile.events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  std::map<std::string, uint64_t> weights = WeightsByTask(profile);
  CHECK(weights["deep"] >= 1);
  CHECK(weights["deep > deep > deep"] >= 1);
  uint64_t shown = 0, cut = 0;
  for (const auto& [task, weight] : weights) {
    if (task.ends_with("deep")) shown += weight;
    if (task.starts_with("(more tasks) > deep > deep")) cut += weight;
  }
  CHECK(shown >= 1000);
  CHECK(cut >= 900);
}

}  // namespace
}  // namespace perfkit::session
