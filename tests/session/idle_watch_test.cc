// Sessions that stop when the program is idle.
#include "src/session/idle_watch.h"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <thread>

#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

SessionOptions StopsWhenIdle(std::chrono::nanoseconds time) {
  return {.stacks = SessionStacks::kNone, .stop_when_idle = time};
}

TEST_CASE("idle is the time in which no thread was put on a CPU", "[idle_watch]") {
  IdleWatch watch;
  CHECK(watch.Update({{.tid = 1, .times_run = 5}, {.tid = 2, .times_run = 9}}, 100) == 0);
  CHECK(watch.Update({{.tid = 1, .times_run = 5}, {.tid = 2, .times_run = 9}}, 150) == 50);
  CHECK(watch.Update({{.tid = 1, .times_run = 5}, {.tid = 2, .times_run = 10}}, 200) == 0);
  CHECK(watch.Update({{.tid = 1, .times_run = 5}, {.tid = 2, .times_run = 10}}, 230) == 30);
  // Another thread, with the same number of runs.
  CHECK(watch.Update({{.tid = 1, .times_run = 5}, {.tid = 3, .times_run = 10}}, 240) == 0);
  CHECK(watch.Update({{.tid = 1, .times_run = 5}}, 300) == 0);
  CHECK(watch.Update({{.tid = 1, .times_run = 5}}, 300) == 0);
  CHECK(watch.Update({{.tid = 1, .times_run = 5}}, 400) == 100);
  // A thread that waits for a CPU is not idle, although it does not run; and runs on after the look.
  CHECK(watch.Update({{.tid = 1, .times_run = 5, .runnable = true}}, 500) == 0);
  CHECK(watch.Update({{.tid = 1, .times_run = 5, .runnable = true}}, 600) == 0);
  CHECK(watch.Update({{.tid = 1, .times_run = 5}}, 700) == 0);
  CHECK(watch.Update({{.tid = 1, .times_run = 5}}, 800) == 100);
}

TEST_CASE("looks see a thread that runs, one that has run, and that one sleeps", "[idle_watch][law]") {
  std::atomic<bool> goes{false}, stop{false};
  std::atomic<pid_t> tid{0};
  std::thread other([&] {
    tid = gettid();
    goes.wait(false);
    while (!stop) {
    }
  });
  const auto look = [&]() -> std::optional<ThreadRuns> {
    const absl::StatusOr<std::vector<ThreadRuns>> threads = LookAtRuns();
    REQUIRE(threads.status() == absl::OkStatus());
    CHECK(std::ranges::none_of(*threads, [](const ThreadRuns& one) { return one.tid == gettid(); }));
    const auto found = std::ranges::find(*threads, tid.load(), &ThreadRuns::tid);
    return found != threads->end() ? std::optional(*found) : std::nullopt;
  };
  while (tid == 0 || look().value_or(ThreadRuns{.runnable = true}).runnable) std::this_thread::sleep_for(1ms);
  const std::optional<ThreadRuns> asleep = look();
  CHECK(look() == asleep);
  goes = true;
  goes.notify_all();
  std::optional<ThreadRuns> awake = look();
  while (awake == asleep) awake = look();
  CHECK(awake->runnable);
  // It spins: however often it is preempted, it is runnable.
  for (int i = 0; i < 100; ++i) CHECK(look()->runnable);
  stop = true;
  other.join();
}

TEST_CASE("a session of an idle process stops, not earlier than after the time", "[session][idle_watch][law]") {
  SessionOptions options = StopsWhenIdle(20ms);
  options.clock = GENERATE(SessionClock::kCpu, SessionClock::kWall);
  options.mode = options.clock == SessionClock::kCpu ? GENERATE(RingMode::kStream, RingMode::kOverwrite)
                                                     : RingMode::kStream;
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  uint64_t active_ns = 0;
  do {
    active_ns = sys::ClockNs(CLOCK_MONOTONIC);
    std::this_thread::sleep_for(150ms);
  } while (session->running());
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(profile->to_ns >= active_ns + 20'000'000);
  CHECK(std::ranges::any_of(profile->accounting.notes, [](const std::string& note) {
    return note.find("no thread had run for") != note.npos;
  }));
}

TEST_CASE("a session goes on while any thread is busy", "[session][idle_watch][law]") {
  absl::StatusOr<Session> session = Session::Start(StopsWhenIdle(100ms));
  REQUIRE(session.status() == absl::OkStatus());
  bool ran_on = false;
  // From its begin until its end a thread is runnable; and the main one is not idle before it waits for that.
  std::thread([&] {
    Spin(300ms);
    ran_on = session->running();
  }).join();
  CHECK(ran_on);
}

TEST_CASE("who polls a session is not idle", "[session][idle_watch]") {
  SessionOptions options = StopsWhenIdle(5ms);
  options.own_thread = false;
  const absl::Status status = Session::Start(options).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(status.message().find("stop_when_idle") != std::string_view::npos);
}

}  // namespace
}  // namespace perfkit::session
