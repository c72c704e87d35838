// Frames during which their session was paused.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "perfkit/frame_counter.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a frame in which its session was paused is not whole, and a note says so", "[session][pauses][law]") {
  FrameCounter frames({.events = {"task-clock"}});
  SessionOptions options;
  options.stacks = SessionStacks::kNone;
  options.frames = &frames;
  absl::StatusOr<Session> session = Session::Start(options);
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark();
  for (int frame = 1; frame <= 3; ++frame) {
    Spin(2ms);
    if (frame == 2) REQUIRE(session->Pause() == absl::OkStatus());
    Spin(2ms);
    if (frame == 2) REQUIRE(session->Resume() == absl::OkStatus());
    Spin(2ms);
    frames.Mark();
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  std::string whole;
  for (const ProfileZone& zone : profile->zones) {
    if (zone.is_frame && zone.from_ns >= profile->from_ns) whole += zone.is_whole ? '+' : '-';
  }
  CHECK(whole == "+-+");
  CHECK(std::ranges::any_of(profile->accounting.notes, [](const std::string& note) {
    return note.starts_with("the session was paused once, for ");
  }));
}

}  // namespace
}  // namespace perfkit::session
