// The tasks of a TaskCounter in a session's profile.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/task_counter.h"
#include "tests/session/support.h"
#include "tests/session/task_profiles.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

// What a thread knows of itself: it was in this task for certain, or in none (number 0), between two readings of the
// clock.
struct KnownPart {
  uint64_t from_ns = 0, to_ns = 0, number = 0;
};

// Threads that take tasks of three kinds from one queue, work on them for a while, and put them back.
class HoppingTasks {
 public:
  static constexpr size_t kKinds = 3, kThreads = 3, kParts = 60;
  static constexpr std::array<const char*, kKinds> kNames = {"path", "mesh", "sound"};
  static constexpr std::array<size_t, kKinds> kFaults = {7, 3, 1};  // in each part

  explicit HoppingTasks(TaskCounter& tasks) {
    for (size_t i = 0; i < 4 * kKinds; ++i) {
      queue_.push_back({.task = tasks.Create({kNames[i % kKinds]}), .kind = i % kKinds});
      kind_of_[queue_.back().task.number()] = i % kKinds;
    }
  }

  void Run() {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) threads.emplace_back([this, i] { Work(i); });
    for (std::thread& thread : threads) thread.join();
  }

  // By tid.
  const std::map<uint32_t, std::vector<KnownPart>>& known() const { return known_; }
  size_t kind_of(uint64_t number) const { return kind_of_.at(number); }
  bool is_one(uint64_t number) const { return kind_of_.count(number) != 0; }
  uint64_t faults(size_t kind) const { return faults_[kind]; }

 private:
  struct Entry {
    TaskCounter::Task task{};
    size_t kind = 0;
  };

  void Work(size_t seed) {
    std::minstd_rand random(static_cast<unsigned>(seed + 1));
    std::vector<KnownPart> known;
    uint64_t since_ns = sys::ClockNs(CLOCK_MONOTONIC);
    for (size_t part = 0; part < kParts; ++part) {
      Entry entry = Take(random());
      Fault(2);
      Spin(100us);
      const uint64_t resumes_ns = sys::ClockNs(CLOCK_MONOTONIC);
      known.push_back({since_ns, resumes_ns, 0});
      entry.task.Resume();
      const uint64_t resumed_ns = sys::ClockNs(CLOCK_MONOTONIC);
      Fault(kFaults[entry.kind]);
      Spin(100us * (entry.kind + 1));
      known.push_back({resumed_ns, sys::ClockNs(CLOCK_MONOTONIC), entry.task.number()});
      entry.task.Suspend();
      since_ns = sys::ClockNs(CLOCK_MONOTONIC);
      const std::lock_guard<std::mutex> lock(mutex_);
      faults_[entry.kind] += kFaults[entry.kind];
      queue_.push_back(std::move(entry));
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    known_[static_cast<uint32_t>(gettid())] = std::move(known);
  }
  Entry Take(size_t random) {
    const std::lock_guard<std::mutex> lock(mutex_);  // more tasks than threads: there is one
    std::swap(queue_[random % queue_.size()], queue_.back());
    Entry entry = std::move(queue_.back());
    queue_.pop_back();
    return entry;
  }

  std::mutex mutex_;
  std::deque<Entry> queue_;
  std::map<uint64_t, size_t> kind_of_;
  std::array<uint64_t, kKinds> faults_{};
  std::map<uint32_t, std::vector<KnownPart>> known_;
};

// Checks the task of each sample that lies in a known part. Ticks are put on CLOCK_MONOTONIC with an error of some 100
// ns (tick_clock.h), so a margin at both ends decides nothing. Returns the number of samples that were checked.
size_t CheckTasks(const Profile& profile, const HoppingTasks& hopping) {
  constexpr uint64_t kMarginNs = 10'000;
  size_t checked = 0, wrong = 0;
  for (const ProfileSample& sample : profile.samples) {
    const auto known = hopping.known().find(profile.threads[sample.thread].tid);
    if (known == hopping.known().end() || sample.merged()) continue;
    for (const KnownPart& part : known->second) {
      if (sample.time_ns < part.from_ns + kMarginNs || sample.time_ns + kMarginNs > part.to_ns) continue;
      ++checked;
      const std::string name = part.number == 0 ? "" : HoppingTasks::kNames[hopping.kind_of(part.number)];
      if (sample.task_number != part.number || profile.strings[sample.task] != name) ++wrong;
    }
  }
  CHECK(wrong == 0);
  return checked;
}

TEST_CASE("each sample has the task that the program's own log says", "[session][tasks][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  HoppingTasks hopping(tasks);
  absl::StatusOr<Session> session = StartWith(tasks, {.interval = 50us, .clock = SessionClock::kWall});
  REQUIRE(session.status() == absl::OkStatus());
  hopping.Run();
  const Profile profile = ProfileOf(session);
  const std::map<std::string, uint64_t> weights = WeightsByTask(profile);
  CHECK(Sum(weights) == profile.Total(0).weight);
  CHECK(weights.count(kUnknown) == 0);
  if (profile.events[0].accounting.delivered < 100) SKIP_TEST("there are too few samples");
  CHECK(CheckTasks(profile, hopping) > 0);
}

TEST_CASE("each sample of successive snapshots has its task", "[session][tasks][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  HoppingTasks hopping(tasks);
  SessionOptions options = EachFault();
  options.mode = RingMode::kOverwrite;
  absl::StatusOr<Session> session = StartWith(tasks, options);
  REQUIRE(session.status() == absl::OkStatus());
  std::atomic<bool> ended{false};
  std::thread run([&] {
    hopping.Run();
    ended = true;
  });
  std::vector<Profile> profiles;
  while (!ended) {
    if (absl::StatusOr<Profile> snapshot = session->Snapshot(); snapshot.ok()) profiles.push_back(*std::move(snapshot));
  }
  run.join();
  profiles.push_back(ProfileOf(session));
  size_t checked = 0;
  for (const Profile& profile : profiles) {
    checked += CheckTasks(profile, hopping);
    CHECK(WeightsByTask(profile).count(kUnknown) == 0);
  }
  CHECK(checked > 0);
}

TEST_CASE("the page faults of hopping tasks are theirs", "[session][tasks][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  HoppingTasks(tasks).Run();  // the code of all this is there
  HoppingTasks hopping(tasks);
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  hopping.Run();
  const Profile profile = ProfileOf(session);
  std::map<std::string, uint64_t> weights = WeightsByTask(profile);
  CHECK(Sum(weights) == profile.Total(0).weight);
  if (profile.events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  CHECK(weights.count(kUnknown) == 0);
  for (size_t kind = 0; kind < HoppingTasks::kKinds; ++kind) {
    INFO(HoppingTasks::kNames[kind]);
    CHECK(weights[HoppingTasks::kNames[kind]] >= hopping.faults(kind));
  }
  for (const ProfileSample& sample : profile.samples) {
    REQUIRE((sample.task_number == 0 || hopping.is_one(sample.task_number)));
  }
}

TEST_CASE("the parts of tasks are those that the TaskCounter has counted", "[session][tasks][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks);
  REQUIRE(session.status() == absl::OkStatus());
  TaskCounter::Task outer = tasks.Create({"outer"}), inner = tasks.Create({"inner"});
  for (int i = 0; i < 20; ++i) {
    outer.Resume();
    {
      PERFKIT_TASK_ZONE(tasks, "zone");
      inner.Resume();  // interrupts the other one
      inner.Suspend();
    }
    TaskCounter::Switch(outer, inner);
    inner.Suspend();
  }
  const Profile profile = ProfileOf(session);
  REQUIRE(PartsOf(profile, outer.number()).size() == 20 * 4);  // before, in the zone twice, after
  REQUIRE(PartsOf(profile, inner.number()).size() == 20 * 2);
  uint64_t last_ns = 0, outer_ns = 0;
  for (const ProfileTaskPart& part : profile.task_parts) {
    CHECK(part.from_ns >= last_ns);  // one thread: no two at the same time
    last_ns = part.to_ns;
    if (part.number == outer.number()) outer_ns += part.to_ns - part.from_ns;
    CHECK(profile.strings[part.name] == (part.number == outer.number() ? "outer" : "inner"));
  }
  CHECK(std::any_of(profile.task_parts.begin(), profile.task_parts.end(), [&](const ProfileTaskPart& part) {
    return part.number == outer.number() && profile.strings[part.task] == "outer/zone";
  }));
  // Each end of a part is exact to some 100 ns.
  CHECK(static_cast<double>(outer_ns) == Approx(outer.totals().run_ns).epsilon(0.05).margin(100'000));
}

TEST_CASE("a task that ends on another thread has parts on both", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  TaskCounter::Task task = tasks.Create({"wanders"});
  const uint64_t number = task.number();
  task.Resume();
  Fault(10);
  task.Suspend();
  std::thread([&] {
    task.Resume();
    Fault(20);
    task = {};
  }).join();
  const Profile profile = ProfileOf(session);
  const std::vector<ProfileTaskPart> parts = PartsOf(profile, number);
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].thread != parts[1].thread);
  std::map<uint32_t, uint64_t> faults;  // by thread
  for (const ProfileSample& sample : profile.samples) {
    if (sample.task_number == number) faults[sample.thread] += sample.weight;
  }
  if (profile.events[0].accounting.lost != 0) SKIP_TEST("samples were lost");
  CHECK(faults[parts[0].thread] >= 10);
  CHECK(faults[parts[1].thread] >= 20);
}

TEST_CASE("a wait has the task that it began in", "[session][tasks][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks, {.clock = SessionClock::kWall});
  REQUIRE(session.status() == absl::OkStatus());
  TaskCounter::Task task = tasks.Create({"sleeps"});
  task.Resume();
  usleep(20'000);
  task.Suspend();
  usleep(20'000);
  const Profile profile = ProfileOf(session);
  const std::vector<ProfileTaskPart> parts = PartsOf(profile, task.number());
  REQUIRE(parts.size() == 1);
  CHECK(WeightsByTask(profile, profile.EventIndex(kOffCpuEvent))["sleeps"] >= (parts[0].to_ns - parts[0].from_ns) / 2);
}

TEST_CASE("a snapshot has the task that runs", "[session][tasks]") {
  TaskCounter tasks({.events = {"task-clock"}});
  absl::StatusOr<Session> session = StartWith(tasks, EachFault());
  REQUIRE(session.status() == absl::OkStatus());
  TaskCounter::Task task = tasks.Create({"open"});
  task.Resume();
  Fault(30);
  const absl::StatusOr<Profile> snapshot = session->Snapshot();
  REQUIRE(snapshot.status() == absl::OkStatus());
  CHECK(snapshot->Check() == absl::OkStatus());
  CHECK(PartsOf(*snapshot, task.number()).size() == 1);
  std::map<std::string, uint64_t> weights = WeightsByTask(*snapshot);  // the latest samples are still held back
  CHECK(weights["open"] > 0);
  CHECK(weights.count(kUnknown) == 0);
}

}  // namespace
}  // namespace perfkit::session
