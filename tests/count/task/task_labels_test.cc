// The tasks of a Sampler's samples.
#include "perfkit/task_labels.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/sampler.h"
#include "src/sys/clock.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::count {
namespace {

constexpr const char* kUnknownLabel = "[task unknown]";

SamplerOptions EachPageFault() {
  SamplerOptions options;
  options.events = {{.event = "page-faults:u", .rate = Period{1}}};
  return options;
}

// What a thread knows of itself: it was in this task for certain, or in none (number 0), between two readings of the
// clock.
struct LabelPart {
  uint64_t from_ns = 0, to_ns = 0, number = 0;
};
using LabelParts = std::map<uint32_t, std::vector<LabelPart>>;  // By tid.

void TouchFresh(size_t pages) { testing::FreshPages(pages).Touch(0, pages); }

uint64_t NowNs() { return sys::ClockNs(CLOCK_MONOTONIC); }

// Returns a time that is 2 us after the call, and 2 us before the return: labels have the times of switches to some
// 100 ns only.
uint64_t TimeWithin() {
  constexpr uint64_t kApartNs = 2'000;
  const uint64_t time_ns = NowNs() + kApartNs;
  while (NowNs() < time_ns + kApartNs) continue;
  return time_ns;
}

// Runs `times` parts of a task on the calling thread, with faults in it and between.
std::vector<LabelPart> RunParts(TaskCounter::Task& task, size_t times) {
  std::vector<LabelPart> parts;
  uint64_t since_ns = NowNs();
  for (size_t i = 0; i < times; ++i) {
    TouchFresh(2);
    parts.push_back({since_ns, NowNs(), 0});
    task.Resume();
    const uint64_t resumed_ns = NowNs();
    TouchFresh(3);
    parts.push_back({resumed_ns, NowNs(), task.number()});
    task.Suspend();
    since_ns = NowNs();
  }
  return parts;
}

TEST_CASE("task labels: each sample of a sampler has the task that ran", "[task][recording][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<TaskLabels> labels = TaskLabels::Start(tasks);
  if (!labels.ok()) SKIP_TEST(std::string(labels.status().message()));
  auto sampler = Sampler::Open(EachPageFault(), Target::AllThreads());
  if (!sampler.ok()) SKIP_TEST(std::string(sampler.status().message()));
  std::array<TaskCounter::Task, 3> jobs{tasks.Create({"a"}), tasks.Create({"b"}), tasks.Create({"c"})};
  LabelParts known;
  std::mutex mutex;
  size_t checked = 0, wrong = 0;
  const auto check = [&](const SamplerRecord& record) {
    Dispatch(record, sampler->layout(), [&](const Sample& sample) {
      const TaskLabel label = labels->At(sample.task()->tid, *sample.time_ns());
      for (const LabelPart& part : known[sample.task()->tid]) {
        if (*sample.time_ns() <= part.from_ns || *sample.time_ns() >= part.to_ns) continue;
        ++checked;
        wrong += label.is_known && label.number == part.number && label.path.empty() == (part.number == 0) ? 0 : 1;
      }
    });
  };
  REQUIRE(sampler->Start() == absl::OkStatus());
  for (int round = 0; round < 5; ++round) {
    std::vector<std::thread> threads;
    for (TaskCounter::Task& job : jobs) {
      threads.emplace_back([&] {
        std::vector<LabelPart> parts = RunParts(job, 40);
        const std::lock_guard<std::mutex> lock(mutex);
        std::vector<LabelPart>& all = known[static_cast<uint32_t>(gettid())];
        all.insert(all.end(), parts.begin(), parts.end());
      });
    }
    for (std::thread& thread : threads) thread.join();
    sampler->Drain(check);
  }
  REQUIRE(sampler->Stop() == absl::OkStatus());
  sampler->Drain(check);
  CHECK(wrong == 0);
  CHECK(labels->lost() == 0);
  if (sampler->stats().events[0].lost == 0) CHECK(checked >= 5 * 3 * 40 * 3);
}

TEST_CASE("task labels: what is not known is not told", "[task][recording][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  TaskCounter::Task early = tasks.Create({"early"}), job = tasks.Create({"job"});
  early.Resume();
  const uint64_t before_ns = NowNs();
  absl::StatusOr<TaskLabels> labels = TaskLabels::Start(tasks);
  if (!labels.ok()) SKIP_TEST(std::string(labels.status().message()));
  const auto tid = static_cast<uint32_t>(gettid());
  CHECK(labels->At(tid, before_ns).path == kUnknownLabel);
  const uint64_t early_ns = TimeWithin();
  CHECK(!labels->At(tid, early_ns).is_known);  // It has not switched yet.
  early.Suspend();
  const uint64_t outside_ns = TimeWithin();
  job.Resume();
  const uint64_t job_ns = TimeWithin();
  CHECK(labels->At(tid, job_ns).path == "job");
  CHECK(labels->At(tid, early_ns).path == "early");
  CHECK(labels->At(tid, outside_ns).path.empty());
  CHECK(labels->At(tid, NowNs()).number == job.number());
  CHECK(labels->At(tid, UINT64_MAX).path == kUnknownLabel);
  CHECK(labels->At(tid + 1'000'000, job_ns).path.empty());  // A thread that no task ran on.
  // Another thread suspends the task: since its last switch nothing is known.
  std::thread([&] { job.Suspend(); }).join();
  CHECK(!labels->At(tid, NowNs()).is_known);
  // Another recording begins.
  const absl::StatusOr<TaskLabels> others = TaskLabels::Start(tasks);
  REQUIRE(others.ok());
  CHECK(labels->At(tid, early_ns).path == "early");
  CHECK(!labels->At(tid, NowNs()).is_known);
}

TEST_CASE("task labels: memory is bounded, and what is forgotten is not known", "[task][recording][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<TaskLabels> labels = TaskLabels::Start(tasks, 64 << 10);
  if (!labels.ok()) SKIP_TEST(std::string(labels.status().message()));
  TaskCounter::Task job = tasks.Create({"job"});
  const auto tid = static_cast<uint32_t>(gettid());
  std::vector<uint64_t> times_ns;
  uint32_t ended_tid = 0;
  uint64_t ended_ns = 0;
  std::thread([&] {
    const TaskScope scope(job);
    ended_tid = static_cast<uint32_t>(gettid());
    ended_ns = TimeWithin();
  }).join();
  CHECK(labels->At(ended_tid, ended_ns).path == "job");
  for (int i = 0; i < 20'000; ++i) {
    const TaskScope scope(job);
    times_ns.push_back(TimeWithin());
    if (i % 100 == 0) CHECK(labels->At(tid, times_ns.back()).path == "job");
  }
  CHECK(labels->At(tid, times_ns.back()).path == "job");
  CHECK(!labels->At(tid, times_ns.front()).is_known);
  CHECK(!labels->At(ended_tid, ended_ns).is_known);
  size_t known = 0;
  for (const uint64_t time_ns : times_ns) {
    const TaskLabel label = labels->At(tid, time_ns);
    if (label.is_known) CHECK(label.path == "job");
    known += label.is_known ? 1 : 0;
  }
  CHECK((known >= 500 && known <= 2800));
}

TEST_CASE("task labels: one reading that brings more than the maximum keeps no more than that",
          "[task][recording][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<TaskLabels> labels = TaskLabels::Start(tasks, 64 << 10);
  if (!labels.ok()) SKIP_TEST(std::string(labels.status().message()));
  TaskCounter::Task job = tasks.Create({"job"});
  const auto tid = static_cast<uint32_t>(gettid());
  std::vector<uint64_t> times_ns;
  for (int i = 0; i < 20'000; ++i) {
    const TaskScope scope(job);
    times_ns.push_back(NowNs());
  }
  CHECK(labels->At(tid, times_ns.back()).path == "job");
  const auto known = std::ranges::count_if(times_ns, [&](uint64_t ns) { return labels->At(tid, ns).is_known; });
  CHECK(static_cast<size_t>(known) * 2 * 24 <= 64 << 10);  // Each is two switches of 24 bytes.
}

TEST_CASE("task labels: a task that ran at the start is known up to its end, suspended before or not",
          "[task][recording][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  const auto tid = static_cast<uint32_t>(gettid());
  for (const bool suspended : {true, false}) {
    TaskCounter::Task job = tasks.Create({"job"});
    job.Resume();
    absl::StatusOr<TaskLabels> labels = TaskLabels::Start(tasks);
    if (!labels.ok()) SKIP_TEST(std::string(labels.status().message()));
    const uint64_t in_task_ns = TimeWithin();
    for (const uint64_t until = NowNs() + 1'000'000; NowNs() < until;) continue;
    if (suspended) job.Suspend();
    { TaskCounter::Task ended = std::move(job); }
    INFO("suspended " << suspended);
    CHECK(labels->At(tid, in_task_ns).path == "job");
  }
}

TEST_CASE("task labels: they outlive their TaskCounter", "[task][recording][law]") {
  auto tasks = std::make_unique<TaskCounter>(TaskOptions{.events = {"task-clock"}});
  absl::StatusOr<TaskLabels> labels = TaskLabels::Start(*tasks);
  if (!labels.ok()) SKIP_TEST(std::string(labels.status().message()));
  uint64_t in_task_ns = 0;
  {
    TaskCounter::Task job = tasks->Create({"job"});
    const TaskScope scope(job);
    in_task_ns = TimeWithin();
  }
  tasks = nullptr;
  TaskLabels moved = *std::move(labels);
  CHECK(moved.At(static_cast<uint32_t>(gettid()), in_task_ns).path == "job");
  CHECK(moved.At(static_cast<uint32_t>(gettid()), NowNs()).path.empty());
}

TEST_CASE("task labels: what was unknown stays so once another recording has begun", "[task][recording][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  TaskCounter::Task job = tasks.Create({"job"});
  const auto tid = static_cast<uint32_t>(gettid());
  const bool is_lost = GENERATE(false, true);
  if (!is_lost) job.Resume();
  absl::StatusOr<TaskLabels> labels = TaskLabels::Start(tasks);
  if (!labels.ok()) SKIP_TEST(std::string(labels.status().message()));
  for (int i = 0; is_lost && i < 50'000; ++i) {  // A log has room for 43,000 switches.
    const TaskScope scope(job);
  }
  const uint64_t unknown_ns = NowNs();
  CHECK(!labels->At(tid, unknown_ns).is_known);
  const uint64_t lost = labels->lost();
  CHECK((lost != 0) == is_lost);
  const absl::StatusOr<TaskLabels> others = TaskLabels::Start(tasks);
  REQUIRE(others.ok());
  CHECK(!labels->At(tid, NowNs()).is_known);
  CHECK(!labels->At(tid, unknown_ns).is_known);
  CHECK(labels->lost() == lost);
  job.Suspend();
}

TEST_CASE("task labels: a forked child knows what its parent had read", "[task][recording][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<TaskLabels> labels = TaskLabels::Start(tasks);
  if (!labels.ok()) SKIP_TEST(std::string(labels.status().message()));
  TaskCounter::Task job = tasks.Create({"job"});
  const auto tid = static_cast<uint32_t>(gettid());
  const auto run = [&] {
    const TaskScope scope(job);
    return NowNs();
  };
  const uint64_t read_ns = run();
  CHECK(labels->At(tid, read_ns).path == "job");
  const uint64_t unread_ns = run();
  const pid_t child = fork();
  if (child == 0) {
    const bool right = labels->At(tid, read_ns).path == "job" && !labels->At(tid, unread_ns).is_known &&
                       !labels->At(tid, run()).is_known;
    _exit(right ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(labels->At(tid, unread_ns).path == "job");
}

}  // namespace
}  // namespace perfkit::count
