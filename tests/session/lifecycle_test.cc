// Sessions that begin, end, move, are replaced, forked, and refused.
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

#include "src/proc/blocked_call.h"
#include "src/proc/threads.h"
#include "src/sys/files.h"
#include "tests/session/support.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"
#include "tests/sys/in_child.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;
using perfkit::testing::InChild;

SessionOptions Cheap() { return {.stacks = SessionStacks::kNone, .lines = false}; }

struct Held {
  size_t descriptors = 0;
  size_t rings = 0;  // mappings of the kernel's; those of an allocator come and go
};

Held WhatIsHeld() {
  std::istringstream maps(sys::ReadFile("/proc/self/maps").value_or(""));
  std::vector<std::string> lines;
  for (std::string line; std::getline(maps, line);) lines.push_back(line);
  const absl::StatusOr<std::vector<std::string>> descriptors = sys::ListFolder("/proc/self/fd");
  return {.descriptors = descriptors.value_or(std::vector<std::string>{}).size(),
          .rings = static_cast<size_t>(std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
            return line.find("[perf_event]") != std::string::npos;
          }))};
}

// Threads of sessions, by their name: a sanitizer has threads of its own.
size_t SessionThreads() {
  size_t count = 0;
  for (const pid_t tid : proc::ListThreads(getpid()).value_or(std::vector<pid_t>{})) {
    count += sys::ReadFile("/proc/self/task/" + std::to_string(tid) + "/comm").value_or("") == "perfkit-session\n";
  }
  return count;
}

// Waits until `wanted` threads are listed: a thread that was joined is still listed for a moment.
void WaitForThreads(size_t wanted) {
  while (SessionThreads() != wanted) std::this_thread::sleep_for(1ms);
}

TEST_CASE("a second session is refused, or replaces the first, which keeps its profile", "[session][lifecycle]") {
  absl::StatusOr<Session> first = Session::Start(Cheap());
  REQUIRE(first.status() == absl::OkStatus());
  CHECK(Session::Start(Cheap()).status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(first->running());
  Fault(10);
  SessionOptions options = Cheap();
  options.replace = true;
  absl::StatusOr<Session> second = Session::Start(options);
  REQUIRE(second.status() == absl::OkStatus());
  CHECK_FALSE(first->running());
  CHECK(second->running());
  CHECK(first->Pause().code() == absl::StatusCode::kFailedPrecondition);
  CHECK(first->Poll() == absl::OkStatus());
  CHECK(first->Snapshot().status() == absl::OkStatus());
  const absl::StatusOr<Profile> profile = first->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(second->Stop().status() == absl::OkStatus());
  CHECK(Session::Start(Cheap()).status() == absl::OkStatus());
}

TEST_CASE("a session is moved, and what it was moved from says so", "[session][lifecycle]") {
  absl::StatusOr<Session> first = Session::Start(Cheap());
  REQUIRE(first.status() == absl::OkStatus());
  std::optional<Session> moved(*std::move(first));
  CHECK(moved->running());
  CHECK_FALSE(first->running());
  CHECK(first->poll_fd() == -1);
  for (const absl::Status& status :
       {first->Pause(), first->Resume(), first->Poll(), first->Stop().status(), first->Snapshot().status()}) {
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  }
  moved.reset();  // without Stop
  CHECK(Session::Start(Cheap()).status() == absl::OkStatus());
}

TEST_CASE("of many that start at once one begins, of many that stop one has the profile", "[session][lifecycle]") {
  for (int round = 0; round < 10; ++round) {
    std::atomic<int> started{0}, refused{0}, stopped{0}, late{0};
    std::optional<Session> running;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        absl::StatusOr<Session> session = Session::Start(Cheap());
        if (session.ok()) {
          ++started;
          running.emplace(*std::move(session));
        } else {
          refused += session.status().code() == absl::StatusCode::kFailedPrecondition;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    threads.clear();
    REQUIRE(started == 1);
    REQUIRE(refused == 3);
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        const absl::Status status = running->Stop().status();
        stopped += status.ok();
        late += status.code() == absl::StatusCode::kFailedPrecondition;
      });
    }
    for (std::thread& thread : threads) thread.join();
    CHECK(stopped == 1);
    CHECK(late == 3);
  }
}

TEST_CASE("a session stops by itself, and gives its profile when it is asked", "[session][lifecycle][law]") {
  SessionOptions options = Cheap();
  options.stop_after = 5ms;
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  while (session->running()) std::this_thread::sleep_for(1ms);
  // Its thread has nothing more to do, however long the session is kept.
  WaitForThreads(0);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(profile->to_ns - profile->from_ns >= 5'000'000);
}

TEST_CASE("a stopped flight recorder gives the same profile each time", "[session][lifecycle]") {
  SessionOptions options = Cheap();
  options.events = ClockAndFaults();
  options.mode = RingMode::kOverwrite;
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  Fault(20);
  CHECK(session->Snapshot().status() == absl::OkStatus());
  Fault(10);
  SessionOptions other = Cheap();
  other.replace = true;
  REQUIRE(Session::Start(other).status() == absl::OkStatus());
  const std::array<absl::StatusOr<Profile>, 3> profiles = {session->Snapshot(), session->Snapshot(), session->Stop()};
  for (const absl::StatusOr<Profile>& profile : profiles) {
    REQUIRE(profile.status() == absl::OkStatus());
    CHECK(profile->Total(1).samples >= 10);
    for (size_t event = 0; event < 2; ++event) {
      CHECK(profile->Total(event) == profiles[0]->Total(event));
      CHECK(profile->Total(event).samples == profile->events[event].accounting.delivered);
      CHECK(profile->Total(event).weight == profile->events[event].accounting.represented);
    }
  }
}

TEST_CASE("sessions in quick succession leave nothing", "[session][lifecycle][law]") {
  const int rounds = testing::kSanitized ? 20 : 1000;
  const auto run = [](int round) {
    absl::StatusOr<Session> session = Session::Start(Cheap());
    REQUIRE(session.status() == absl::OkStatus());
    if (round % 3 == 0) REQUIRE(session->Stop().status() == absl::OkStatus());
    if (round % 3 == 1) REQUIRE(session->Snapshot().status() == absl::OkStatus());
  };
  for (int round = 0; round < 10; ++round) run(round);
  const Held before = WhatIsHeld();
  for (int round = 0; round < rounds; ++round) run(round);
  const Held after = WhatIsHeld();
  CHECK(after.descriptors == before.descriptors);
  CHECK(after.rings == before.rings);
  WaitForThreads(0);
}

TEST_CASE("a stopped session holds no descriptor", "[session][lifecycle][law]") {
  const Held before = WhatIsHeld();
  absl::StatusOr<Session> session = Session::Start(Cheap());
  REQUIRE(session.status() == absl::OkStatus());
  const Held running = WhatIsHeld();
  WaitForThreads(1);
  REQUIRE(session->Stop().status() == absl::OkStatus());
  const Held stopped = WhatIsHeld();
  WaitForThreads(0);
  CHECK(stopped.descriptors <= before.descriptors + 3);  // what wakes its thread
  CHECK(stopped.descriptors < running.descriptors);
}

// The session's callback forks once, when the main thread waits for this session to end.
bool ReplaceWhileItForks() {
  alarm(60);
  std::atomic<bool> is_called{false}, has_forked{false};
  SessionOptions options = Cheap();
  options.on_batch = [&](const SessionBatch&) {
    if (is_called.exchange(true)) return;
    while (proc::ReadState(getpid()) != 'S') std::this_thread::sleep_for(1ms);
    has_forked = InChild([] { return true; }) == 0;
  };
  const absl::StatusOr<Session> first = Session::Start(options);
  if (!first.ok()) return false;
  while (!is_called) Spin(1ms);
  SessionOptions other = Cheap();
  other.replace = true;
  return Session::Start(other).ok() && has_forked && !first->running();
}

TEST_CASE("a session is replaced while its callback forks", "[session][lifecycle][law]") {
  if (!testing::kThreadsAfterFork) SKIP_TEST("the sanitizer ends a forked child that starts a thread");
  CHECK(InChild(ReplaceWhileItForks) == 0);
}

TEST_CASE("a forked child has no session, holds none of its descriptors, and starts its own",
          "[session][lifecycle][law]") {
  const size_t before = WhatIsHeld().descriptors;
  absl::StatusOr<Session> session = Session::Start(Cheap());
  REQUIRE(session.status() == absl::OkStatus());
  std::atomic<bool> stop{false};
  std::thread busy([&] {  // the session's thread holds its lock now and then
    while (!stop) (void)session->Poll();
  });
  for (int round = 0; round < (testing::kSanitized ? 4 : 20); ++round) {
    const int result = InChild([&] {
      alarm(60);
      const auto is_refused = [](const absl::Status& status) {
        return status.code() == absl::StatusCode::kFailedPrecondition;
      };
      const bool refused = is_refused(session->Stop().status()) && is_refused(session->Snapshot().status()) &&
                           is_refused(session->Pause()) && is_refused(session->Poll()) && !session->running();
      const bool holds_none = WhatIsHeld().descriptors <= before;
      { const Session destroyed = *std::move(session); }
      SessionOptions options = Cheap();
      options.own_thread = testing::kThreadsAfterFork;
      absl::StatusOr<Session> own = Session::Start(options);
      if (!own.ok()) return false;
      Fault(10);
      const absl::StatusOr<Profile> profile = own->Stop();
      return refused && holds_none && profile.ok() && profile->Check().ok() &&
             profile->Total(0).samples == profile->events[0].accounting.delivered;
    });
    CHECK(result == 0);
  }
  stop = true;
  busy.join();
  CHECK(session->running());
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
}

}  // namespace
}  // namespace perfkit::session
