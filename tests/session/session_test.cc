// Sessions on real work: start, stop, look.
#include "perfkit/session.h"

#include <catch2/catch.hpp>
#include <thread>

#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a session's samples stand for what the sampler says", "[session][law]") {
  absl::StatusOr<Session> session = Session::Start({.interval = 1ms});
  REQUIRE(session.status() == absl::OkStatus());
  std::thread worker([] { Spin(100ms); });
  Spin(100ms);
  worker.join();
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->Check() == absl::OkStatus());
  REQUIRE(profile->events.size() == 1);
  const EventAccounting& accounting = profile->events[0].accounting;
  CHECK(profile->Total(0).samples == accounting.delivered);
  CHECK(profile->Total(0).weight == accounting.represented);
  CHECK(accounting.delivered > 0);
  CHECK_FALSE(session->running());
  CHECK(session->Stop().status().code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace perfkit::session
