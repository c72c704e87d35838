// What is not known of tasks in a profile, and what stays known nonetheless.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "perfkit/task_counter.h"
#include "perfkit/task_labels.h"
#include "tests/session/support.h"
#include "tests/session/task_profiles.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

TEST_CASE("a task that ran when the session started is known once it has switched", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}});
  TaskCounter::Task task = tasks.Create({"early"});
  const bool switches = GENERATE(false, true);
  task.Resume();
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  Fault(30);
  if (switches) task.Suspend();
  const Profile profile = ProfileOf(session);
  if (!switches) task.Suspend();
  if (profile.events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  std::map<std::string, uint64_t> weights = WeightsByTask(profile);
  CHECK(weights[switches ? "early" : kUnknown] >= 30);
}

TEST_CASE("what a thread did after another one had suspended its task is not known", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  TaskCounter::Task task = tasks.Create({"suspended elsewhere"}), next = tasks.Create({"next"});
  const bool ends = GENERATE(false, true), switches = GENERATE(false, true);
  task.Resume();
  Fault(30);
  std::thread([&] {
    if (ends) {
      const TaskCounter::Task ended = std::move(task);
    } else {
      task.Suspend();
    }
  }).join();
  Fault(30);
  if (switches) {
    next.Resume();
    Fault(30);
    next.Suspend();
  }
  const Profile profile = ProfileOf(session);
  std::map<std::string, uint64_t> weights = WeightsByTask(profile);
  CHECK(weights.count("suspended elsewhere") == 0);
  CHECK(std::ranges::none_of(profile.task_parts, [&](const ProfileTaskPart& part) {
    return profile.strings[part.name] == "suspended elsewhere";
  }));
  if (profile.events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  CHECK(weights[kUnknown] >= 60);
  if (switches) CHECK(weights["next"] >= 30);
}

TEST_CASE("what tasks did after another recording of them began is not known", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  TaskCounter::Task before = tasks.Create({"before"}), after = tasks.Create({"after"});
  before.Resume();
  Fault(30);
  before.Suspend();
  absl::StatusOr<TaskLabels> labels = TaskLabels::Start(tasks);
  REQUIRE(labels.status() == absl::OkStatus());
  after.Resume();
  Fault(30);
  after.Suspend();
  const Profile profile = ProfileOf(session);
  CHECK(PartsOf(profile, after.number()).empty());
  if (profile.events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  std::map<std::string, uint64_t> weights = WeightsByTask(profile);
  CHECK(weights.count("after") == 0);
  CHECK(weights["before"] + weights[kUnknown] >= 60);
}

TEST_CASE("switches that a log has no room for are counted, and samples there are unknown", "[session][tasks][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  SessionOptions options = EachFault();
  options.own_thread = false;
  absl::StatusOr<Session> session = StartWith(tasks, std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  TaskCounter::Task task = tasks.Create({"fast"});
  const auto switch_often = [&](int times) {
    for (int i = 0; i < times; ++i) {
      task.Resume();
      task.Suspend();
    }
  };
  task.Resume();
  Fault(10);
  task.Suspend();
  switch_often(60'000);  // a log has room for 43,000
  task.Resume();
  Fault(20);
  task.Suspend();
  REQUIRE(session->Poll() == absl::OkStatus());
  task.Resume();
  Fault(30);
  task.Suspend();
  const Profile profile = ProfileOf(session);
  const uint64_t parts = PartsOf(profile, task.number()).size();
  CHECK(profile.accounting.task_records_lost > 0);
  CHECK(2 * parts + profile.accounting.task_records_lost >= 2 * 60'003);
  std::map<std::string, uint64_t> weights = WeightsByTask(profile);
  CHECK(Sum(weights) == profile.Total(0).weight);
  if (profile.events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  CHECK(weights["fast"] >= 10 + 30);
  CHECK(weights[kUnknown] >= 20);
}

TEST_CASE("a thread that ends while its log is full leaves its losses", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}});
  SessionOptions options = EachFault();
  options.own_thread = false;
  absl::StatusOr<Session> session = StartWith(tasks, std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  std::thread([&] {
    TaskCounter::Task task = tasks.Create({"fast"});
    for (int i = 0; i < 60'000; ++i) {
      task.Resume();
      task.Suspend();
    }
    Fault(20);
  }).join();
  const Profile profile = ProfileOf(session);
  CHECK(profile.accounting.task_records_lost > 0);
  if (profile.events[0].accounting.lost == 0) CHECK(WeightsByTask(profile)[kUnknown] >= 20);
}

TEST_CASE("parts that there is no room for are counted, and tasks of samples stay", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}});
  SessionOptions options = EachFault();
  options.memory_bytes = 64 << 10;
  options.own_thread = false;
  absl::StatusOr<Session> session = StartWith(tasks, std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  constexpr size_t kParts = 10'000;
  TaskCounter::Task task = tasks.Create({"often"});
  for (size_t i = 0; i < kParts; ++i) {
    task.Resume();
    if (i % 20 == 0) Fault(1);
    task.Suspend();
    if (i % 200 == 0) REQUIRE(session->Poll() == absl::OkStatus());
  }
  const Profile profile = ProfileOf(session);
  CHECK(profile.accounting.task_parts_forgotten > 0);
  CHECK(profile.task_parts.size() + profile.accounting.task_parts_forgotten == kParts);
  CHECK(profile.task_parts.size() * 2 * 24 <= 2 * (64 << 10));
  if (profile.events[0].accounting.lost == 0) CHECK(WeightsByTask(profile)["often"] >= kParts / 20);
}

TEST_CASE("samples keep their tasks when ended threads become sums", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  constexpr size_t kThreads = 1300;
  for (size_t i = 0; i < kThreads; ++i) {
    std::thread([&] {
      TaskCounter::Task task = tasks.Create({"short"});
      task.Resume();
      Fault(3);
    }).join();
  }
  const Profile profile = ProfileOf(session);
  CHECK(profile.threads.size() < kThreads);
  CHECK(profile.task_parts.size() + profile.accounting.task_parts_forgotten == kThreads);
  for (const ProfileSample& sample : profile.samples) CHECK((!sample.merged() || sample.task_number == 0));
  if (profile.events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  std::map<std::string, uint64_t> weights = WeightsByTask(profile);
  CHECK(weights["short"] + weights[kUnknown] >= 3 * kThreads);
  CHECK(weights["short"] > 0);
}

TEST_CASE("a TaskCounter may go while a session runs, and another session may have the next", "[session][tasks]") {
  for (int i = 0; i < 3; ++i) {
    auto tasks = std::make_unique<TaskCounter>(TaskCounter::Options{.events = {"task-clock"}});
    absl::StatusOr<Session> session = StartWith(*tasks, EachFault());
    REQUIRE(session.status() == absl::OkStatus());
    {
      TaskCounter::Task task = tasks->Create({"brief"});
      task.Resume();
      Fault(10);
    }
    tasks.reset();
    Fault(10);
    const Profile profile = ProfileOf(session);
    CHECK(PartsOf(profile, 1).size() == 1);
    if (profile.events[0].accounting.lost == 0) CHECK(WeightsByTask(profile)["brief"] >= 10);
  }
}

TEST_CASE("a forked child has no part in its parent's tasks", "[session][tasks][fork]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  TaskCounter::Task task = tasks.Create({"forks"});
  task.Resume();
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 10; ++i) {
      task.Suspend();
      task.Resume();
    }
    absl::StatusOr<Session> own = StartWith(tasks, {.own_thread = false});
    const bool is_refused = !own.ok() || [&] {
      const absl::StatusOr<Profile> profile = own->Stop();
      return profile.ok() && profile->task_parts.empty() && !profile->accounting.notes.empty();
    }();
    _exit(is_refused ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  Fault(10);
  task.Suspend();
  const Profile profile = ProfileOf(session);
  CHECK(PartsOf(profile, task.number()).size() == 1);
}

}  // namespace
}  // namespace perfkit::session
