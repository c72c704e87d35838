// Slow frames of a thread that marks the frames of several loops.
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perfkit/frame_counter.h"
#include "perfkit/keep_frames.h"
#include "tests/session/keeping.h"

namespace perfkit::session {
namespace {

TEST_CASE("a slow frame within a longer frame of its thread is the one that is explained", "[session][keep][law]") {
  constexpr std::chrono::milliseconds kBudget(1);
  FrameCounter frames({.hitch_budget = kBudget});
  const FrameId game = frames.DefineFrame("game");
  std::vector<std::pair<std::string, uint64_t>> given;  // Names and lengths.
  SessionOptions options = Keeping(frames, {});
  options.keep->on_slow_frame = [&](const ExplainedFrame& slow) {
    given.emplace_back(slow.profile.strings[slow.profile.zones[slow.frame.zone].name], slow.frame.ns);
  };
  options.own_thread = false;
  absl::StatusOr<Session> session = Session::Start(std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark(game);
  frames.Mark();
  std::this_thread::sleep_for(2 * kBudget);
  frames.Mark();
  frames.Mark(game);
  REQUIRE(session->Stop().status() == absl::OkStatus());
  REQUIRE(given.size() == 1);
  CHECK(given[0].first.starts_with("frame "));  // Not "game 0", which lasts longer.
  CHECK(given[0].second >= static_cast<uint64_t>(std::chrono::nanoseconds(kBudget).count()));
}

}  // namespace
}  // namespace perfkit::session
