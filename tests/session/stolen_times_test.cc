// What the machine took from threads: readings and records made by hand, and the clocks of a thread that runs.
#include "src/session/stolen_times.h"

#include <catch2/catch.hpp>
#include <map>
#include <thread>

#include "perfkit/frame_counter.h"
#include "perfkit/profile_builder.h"
#include "src/profile/stolen_time.h"
#include "src/sys/kernel.h"
#include "tests/session/support.h"
#include "tests/support/cpus.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

Profile ProfileWith(const StolenTimes& times) {
  ProfileBuilder builder;
  builder.AddThread(1, 1, "main");
  builder.AddThread(1, 2, "other");
  Profile profile = builder.Take();
  KeptTimes all;
  all.Add(0, UINT64_MAX);
  all.Join();
  times.AddTo(profile, 0, UINT64_MAX, all);
  REQUIRE(profile.Check() == absl::OkStatus());
  return profile;
}

uint64_t StolenOf(const StolenTimes& times, uint64_t from_ns, uint64_t to_ns, uint32_t thread = 0) {
  return profile::StolenIn(ProfileWith(times), {.from_ns = from_ns, .to_ns = to_ns, .thread = thread});
}

TEST_CASE("what neither the CPU clock nor the records have was taken by the machine", "[stolen_times]") {
  StolenTimes times;
  times.AddReading(0, 100 * kMs, 50 * kMs);
  times.AddReading(0, 110 * kMs, 60 * kMs);  // ran
  times.AddReading(0, 120 * kMs, 64 * kMs);  // was off its CPU for 3 ms, and not there for 3 more
  times.AddReading(0, 130 * kMs, 64 * kMs);  // was not there
  times.AddOff(0, 112 * kMs, 115 * kMs);
  CHECK(StolenOf(times, 0, 1000 * kMs) == 0);  // not known yet
  times.Ran(0, 131 * kMs);
  CHECK(StolenOf(times, 0, 1000 * kMs) == 13 * kMs);
  CHECK(StolenOf(times, 110 * kMs, 120 * kMs) == 3 * kMs);
  CHECK(StolenOf(times, 111 * kMs, 120 * kMs) == 0);  // perhaps before
  CHECK(StolenOf(times, 0, 1000 * kMs, 1) == 0);
}

TEST_CASE("a thread that is off its CPU is not known to run until it is back", "[stolen_times]") {
  StolenTimes times;
  times.AddReading(0, 100 * kMs, 50 * kMs);
  times.AddReading(0, 110 * kMs, 52 * kMs);
  times.AddReading(0, 120 * kMs, 52 * kMs);
  times.Ran(0, 101 * kMs);
  CHECK(StolenOf(times, 0, 1000 * kMs) == 0);
  times.AddOff(0, 102 * kMs, 121 * kMs);
  times.Ran(0, 125 * kMs);
  CHECK(StolenOf(times, 0, 1000 * kMs) == 0);
}

TEST_CASE("readings and records that differ a little show nothing", "[stolen_times]") {
  StolenTimes times;
  for (uint64_t i = 0; i < 1000; ++i) times.AddReading(0, (100 + 4 * i) * kMs + i % 7 * 20'000, 4 * i * kMs);
  times.Ran(0, 10'000 * kMs);
  CHECK(ProfileWith(times).counters.empty());
}

TEST_CASE("after records are missing, readings are compared anew", "[stolen_times]") {
  StolenTimes times;
  times.AddReading(0, 100 * kMs, 50 * kMs);
  times.Restart();
  times.AddReading(0, 200 * kMs, 50 * kMs);
  times.AddReading(0, 210 * kMs, 60 * kMs);
  times.Ran(0, 300 * kMs);
  CHECK(StolenOf(times, 0, 1000 * kMs) == 0);
}

TEST_CASE("losses take back what was found since the last check", "[stolen_times]") {
  StolenTimes times;
  times.Check(7);
  for (uint64_t i = 0; i < 9; ++i) times.AddReading(0, (100 + 10 * i) * kMs, 50 * kMs);
  times.Ran(0, 121 * kMs);
  CHECK(times.is_check_due());
  times.Check(7);
  CHECK_FALSE(times.is_check_due());
  CHECK(StolenOf(times, 0, 1000 * kMs) == 20 * kMs);
  times.Ran(0, 141 * kMs);
  CHECK(StolenOf(times, 0, 1000 * kMs) == 40 * kMs);
  times.Check(8);
  CHECK(StolenOf(times, 0, 1000 * kMs) == 20 * kMs);
  times.Ran(0, 1000 * kMs);  // what was read until then is not compared
  CHECK(StolenOf(times, 0, 1000 * kMs) == 20 * kMs);
}

TEST_CASE("losses that were told before take back nothing", "[stolen_times]") {
  StolenTimes times;
  times.NoteLoss();
  CHECK(times.is_check_due());
  times.Check(3);
  times.AddReading(0, 100 * kMs, 50 * kMs);
  times.AddReading(0, 110 * kMs, 50 * kMs);
  times.Ran(0, 110 * kMs);
  times.Check(3);
  CHECK(StolenOf(times, 0, 1000 * kMs) == 10 * kMs);
}

// Returns what the machine has taken of a profile's threads.
double StolenOf(const Profile& profile) {
  double ns = 0;
  for (const ProfileCounter& counter : profile.counters) {
    if (profile.strings[counter.name] != profile::kStolenCounter) continue;
    for (const ProfileCounter::Point& point : counter.points) ns += point.value;
  }
  return ns;
}

// Records of switches are not read in time: the ring of one CPU is filled, and the switches to a sleep and back are
// lost. `moves`: then the thread goes on on another CPU. A LOST record is written only with the next record of its
// ring, and there is none. What is taken, the time on the CPU, and the sleeps are no more than the time that has
// passed.
void CheckStolenWhileLost(bool moves) {
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session = Session::Start({.events = {{.event = "page-faults", .rate = Period{1}}},
                                                    .clock = SessionClock::kWall,
                                                    .stacks = SessionStacks::kNone,
                                                    .frames = &frames,
                                                    .own_thread = false});
  REQUIRE(session.status() == absl::OkStatus());
  const perfkit::testing::TwoCpus cpus;
  const uint64_t from_ns = sys::ClockNs(CLOCK_MONOTONIC), cpu_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  uint64_t slept_ns = 0;
  const auto sleep = [&](int ms) {
    std::this_thread::sleep_for(std::chrono::milliseconds(ms));
    slept_ns += static_cast<uint64_t>(ms) * kMs;
  };
  const auto work = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) {
      sleep(1);
      frames.Mark();
      CHECK(session->Poll() == absl::OkStatus());
    }
  };
  cpus.MoveTo(0);
  work(10);
  for (int i = 0; i < 50; ++i) Fault(1000);
  sleep(200);
  if (moves) cpus.MoveTo(1);
  work(10);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  const uint64_t ran_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
  const uint64_t passed_ns = sys::ClockNs(CLOCK_MONOTONIC) - from_ns;
  // A part of a sleep may be taken: between the start of its timer and the switch.
  CHECK(StolenOf(*profile) + static_cast<double>(ran_ns + slept_ns) < static_cast<double>(passed_ns + 100 * kMs));
}

TEST_CASE("what was lost with a full ring is not taken by the machine", "[stolen_times][law]") {
  CheckStolenWhileLost(false);
}

TEST_CASE("what was lost with the ring of a CPU that was left is not taken by the machine", "[stolen_times][law]") {
  if (!perfkit::testing::TwoCpus().has_both()) SKIP_TEST("one CPU");
  for (int i = 0; i < 3; ++i) CheckStolenWhileLost(true);
}

TEST_CASE("threads that became sums are forgotten, and others are not", "[stolen_times]") {
  StolenTimes times;
  for (const uint32_t thread : {0, 1}) {
    times.AddReading(thread, 100 * kMs, 0);
    times.AddReading(thread, 110 * kMs, 0);
    times.Ran(thread, 110 * kMs);
  }
  times.Retire(std::vector<uint32_t>{0, 0});
  CHECK(StolenOf(times, 0, 1000 * kMs, 0) == 10 * kMs);
  CHECK(StolenOf(times, 0, 1000 * kMs, 1) == 0);
}

TEST_CASE("the CPU clock of a thread is its own", "[stolen_times][law]") {
  // As long as the thread is known to run by nothing else, at most the time that has passed was taken.
  StolenTimes times;
  const auto tid = static_cast<uint32_t>(sys::kernel().gettid());
  const uint64_t from_ns = sys::ClockNs(CLOCK_MONOTONIC), cpu_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
  for (int i = 0; i < 20; ++i) {
    times.Read(0, tid);
    Spin(std::chrono::milliseconds(1));
  }
  times.Read(0, tid);
  const uint64_t ran_ns = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
  const uint64_t passed_ns = sys::ClockNs(CLOCK_MONOTONIC) - from_ns;
  times.Ran(0, UINT64_MAX);
  // Readings between which the thread did not run for 0.3 ms or less are left out.
  CHECK(StolenOf(times, from_ns, UINT64_MAX) <= passed_ns - std::min(passed_ns, ran_ns) + kMs);
}

}  // namespace
}  // namespace perfkit::session
