// The values of followers: by hand, and in profiles of this process.
#include "src/session/follower_values.h"

#include <unistd.h>

#include <catch2/catch.hpp>

#include "tests/session/support.h"
#include "tests/support/skip.h"

namespace perfkit::session {
namespace {

TEST_CASE("a follower's value is what it has grown by, for each counter of each thread", "[follower_values]") {
  FollowerValues values;
  CHECK(values.Grown(1, 0, 10, 3) == 3);
  CHECK(values.Grown(1, 0, 10, 10) == 7);
  CHECK(values.Grown(1, 0, 11, 4) == 4);  // on another CPU
  CHECK(values.Grown(2, 0, 10, 5) == 5);  // another thread, which has inherited the event
  CHECK(values.Grown(1, 0, 10, 10) == 0);
  CHECK(values.Grown(1, 0, 10, 2) == 0);  // it can't count backwards: nothing is known
  CHECK(values.Grown(1, 0, 10, 5) == 3);
}

TEST_CASE("what was counted while samples were missing is not known", "[follower_values]") {
  FollowerValues values;
  CHECK(values.Grown(1, 100, 10, 3) == 3);
  values.Restart(1'000);
  CHECK(values.Grown(1, 100, 10, 90) == 0);
  CHECK(values.Grown(1, 100, 10, 95) == 5);
  CHECK(values.Grown(1, 100, 11, 8) == 0);
  CHECK(values.Grown(2, 1'000, 10, 6) == 6);  // it was born later: its counter began at 0
}

TEST_CASE("a thread that has ended leaves nothing to a later one with its index", "[follower_values]") {
  FollowerValues values;
  CHECK(values.Grown(1, 0, 10, 30) == 30);
  CHECK(values.Grown(2, 0, 10, 30) == 30);
  values.Forget(1);
  CHECK(values.Grown(1, 0, 10, 40) == 40);
  CHECK(values.Grown(2, 0, 10, 40) == 10);
}

// The same faults are counted by the event that is sampled and by its follower. At a sample the kernel may not have
// counted the fault at hand for the follower, and no sample comes after the last one of each counter: each thread has
// one on each CPU.
TEST_CASE("followers are events of the profile, with what they counted", "[session][law]") {
  const auto stacks = GENERATE(SessionStacks::kNone, SessionStacks::kBest);
  absl::StatusOr<Session> session = Session::Start(
      {.events = {{.event = "task-clock", .rate = Period{1'000'000}, .followers = {"page-faults"}},
                  {.event = "page-faults", .rate = Period{1}, .followers = {"page-faults", "minor-faults"}}},
       .stacks = stacks});
  if (session.status().code() == absl::StatusCode::kInvalidArgument) SKIP_TEST("this kernel has no counts in samples");
  REQUIRE(session.status() == absl::OkStatus());
  Churn(5);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->Check() == absl::OkStatus());
  REQUIRE(profile->events.size() == 5);
  CHECK(profile->events[2].name == "page-faults at task-clock");
  CHECK(profile->events[4].name == "minor-faults at page-faults");
  const Profile::Sum faults = profile->Total(1), of_clock = profile->Total(2), of_faults = profile->Total(3);
  CHECK(of_clock.samples == 0);
  CHECK(of_faults.samples == 0);
  CHECK(of_clock.weight <= profile->events[1].accounting.counted);
  CHECK(of_faults.weight <= profile->events[1].accounting.counted);
  const uint64_t counters = (5 * kChurned + 2) * static_cast<uint64_t>(sysconf(_SC_NPROCESSORS_CONF));
  CHECK(of_faults.weight + counters + profile->events[1].accounting.lost >= faults.weight);
  CHECK(of_faults.weight > 0);
}

TEST_CASE("what followers count while a session is paused is in no sample", "[session][law]") {
  absl::StatusOr<Session> session =
      Session::Start({.events = {{.event = "page-faults", .rate = Period{1}, .followers = {"page-faults"}}},
                      .stacks = SessionStacks::kNone,
                      .user_only = true});
  if (session.status().code() == absl::StatusCode::kInvalidArgument) SKIP_TEST("this kernel has no counts in samples");
  REQUIRE(session.status() == absl::OkStatus());
  Fault(50);
  REQUIRE(session->Pause() == absl::OkStatus());
  Fault(5'000);
  REQUIRE(session->Resume() == absl::OkStatus());
  Fault(50);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  const EventAccounting& accounting = profile->events[0].accounting;
  CHECK(profile->Total(1).weight <= accounting.counted - 5'000);
}

}  // namespace
}  // namespace perfkit::session
