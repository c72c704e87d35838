// Reasons for frames that were not counted, and slow frames that end faster than they can be explained.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "perfkit/frame_counter.h"
#include "perfkit/keep_frames.h"
#include "tests/session/keeping.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

TEST_CASE("a reason of a frame that was not counted is no other frame's", "[session][keep][law]") {
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session = Session::Start(Keeping(frames, {}));
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark();
  frames.Mark();
  frames.Keep("not counted");
  frames.SetEnabled(false);
  std::this_thread::sleep_for(1ms);
  frames.SetEnabled(true);
  for (int frame = 0; frame < 10; ++frame) {
    if (frame == 5) frames.Keep("counted");
    frames.Mark();
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  size_t counted = 0;
  for (const ProfileZone& zone : profile->zones) {
    CHECK(profile->strings[zone.reason] != "not counted");
    counted += profile->strings[zone.reason] == "counted" ? 1 : 0;
  }
  CHECK(counted == 1);
}

TEST_CASE("slow frames that end faster than they are explained do not hold up the session", "[session][keep]") {
  FrameCounter frames({.events = {"page-faults"}});
  const FrameId audio = frames.DefineFrame("audio", 1ns);
  size_t told = 0;
  SessionOptions options = Keeping(frames, {.on_slow_frame = [&](const ExplainedFrame&) { ++told; }});
  options.own_thread = false;
  absl::StatusOr<Session> session = Session::Start(std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  constexpr size_t kFrames = 500;
  for (size_t frame = 0; frame <= kFrames; ++frame) frames.Mark(audio);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(told > 0);
  CHECK(told < kFrames);
  const std::string note = absl::StrCat(kFrames - told, " slow frames were not given to on_slow_frame");
  CAPTURE(note);
  CHECK(std::ranges::count_if(profile->accounting.notes, [&](const auto& one) { return one.starts_with(note); }) == 1);
}

TEST_CASE("a slow frame is handed over, or a note counts it, however little memory there is", "[session][keep][law]") {
  FrameCounter frames({.events = {"page-faults"}});
  const FrameId audio = frames.DefineFrame("audio", 1ns);
  size_t told = 0;
  SessionOptions options = Keeping(frames, {.on_slow_frame = [&](const ExplainedFrame&) { ++told; }}, 1 << 20);
  options.own_thread = false;
  absl::StatusOr<Session> session = Session::Start(std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  // Each frame has more zones than there is room for.
  constexpr size_t kFrames = 10, kZones = 20'000;
  frames.Mark(audio);
  for (size_t frame = 0; frame < kFrames; ++frame) {
    for (size_t zone = 0; zone < kZones; ++zone) {
      PERFKIT_ZONE(frames, "small");
      if (zone % 1000 == 0) REQUIRE(session->Poll().ok());
    }
    frames.Mark(audio);
    REQUIRE(session->Poll().ok());
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  size_t counted = 0;
  for (const std::string& note : profile->accounting.notes) {
    if (note.find("not given to on_slow_frame") != note.npos) counted += std::stoul(note);
  }
  CAPTURE(told, counted);
  CHECK(told < kFrames);
  CHECK(told + counted == kFrames);
}

TEST_CASE("a frame that began before the session is in the profile, but not whole", "[session][keep][law]") {
  const bool keeps = GENERATE(false, true);
  FrameCounter frames({.events = {"page-faults"}});
  const FrameId audio = frames.DefineFrame("audio", 1ns);
  size_t told = 0;
  SessionOptions options = Keeping(frames, {.on_slow_frame = [&](const ExplainedFrame&) { ++told; }});
  if (!keeps) options.keep.reset();
  options.own_thread = false;
  frames.Mark(audio);
  std::this_thread::sleep_for(1ms);
  absl::StatusOr<Session> session = Session::Start(std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  constexpr size_t kFrames = 5;
  for (size_t frame = 0; frame < kFrames; ++frame) frames.Mark(audio);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  size_t all = 0;
  for (const ProfileZone& zone : profile->zones) {
    if (!zone.is_frame) continue;
    const bool is_cut = zone.from_ns == profile->from_ns;
    CHECK(is_cut == (all++ == 0));
    CHECK(zone.is_whole == !is_cut);
    CHECK(zone.is_reference == (keeps && !is_cut));
  }
  CHECK(all == kFrames);
  CHECK(told == (keeps ? kFrames - 1 : 0));
  const std::string note = "1 slow frames were not given to on_slow_frame: they began before the session";
  CHECK(std::ranges::count(profile->accounting.notes, note) == (keeps ? 1 : 0));
}

}  // namespace
}  // namespace perfkit::session
