// Texts that a program attaches to frames: which frame they are shown with, and what is cut.
#include "src/session/frame_texts.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "perfkit/frame_counter.h"
#include "perfkit/slow_frames.h"
#include "tests/session/keeping.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using count::ZoneRecordKind;

// A frame of thread 7, from 1,000 us to 2,000 us.
struct Texted {
  std::string reason, state;
  FrameTextTarget target{
      .thread = 7, .sequence = 2, .from_ns = 1'000'000, .to_ns = 2'000'000, .reason = reason, .state = state};
};

count::FrameEvent TextOf(ZoneRecordKind kind, uint64_t ns, std::string_view text, uint16_t sequence = 2) {
  return {.kind = kind, .from_ns = ns, .id = sequence, .text = text};
}

TEST_CASE("reasons and states are those of their frame", "[frame_texts]") {
  FrameTexts texts;
  texts.Add(7, TextOf(ZoneRecordKind::kState, 400'000, "before"));
  texts.Add(8, TextOf(ZoneRecordKind::kState, 900'000, "before"));
  texts.Add(7, TextOf(ZoneRecordKind::kState, 1'200'000, "level=3"));
  texts.Add(7, TextOf(ZoneRecordKind::kReason, 1'300'000, "slow"));
  texts.Add(7, TextOf(ZoneRecordKind::kState, 1'300'000, "other loop", 1));
  texts.Add(8, TextOf(ZoneRecordKind::kState, 1'400'000, "players=64"));
  texts.Add(8, TextOf(ZoneRecordKind::kReason, 1'400'000, "late"));
  texts.Add(8, TextOf(ZoneRecordKind::kState, 2'000'000, "after"));
  Texted frame;
  texts.TakeOwn(frame.target);
  CHECK((frame.state == "level=3" && frame.reason == "slow"));
  texts.TakeOthers(frame.target);
  CHECK((frame.state == "level=3; players=64" && frame.reason == "slow; late"));
  Texted next{.target = {.thread = 7,
                         .sequence = 2,
                         .from_ns = 2'000'000,
                         .to_ns = 3'000'000,
                         .reason = next.reason,
                         .state = next.state}};
  texts.TakeOwn(next.target);
  texts.TakeOthers(next.target);
  CHECK((next.state == "after" && next.reason.empty()));
}

TEST_CASE("a frame's state is bounded, and says what is left out", "[frame_texts]") {
  FrameTexts texts;
  for (int i = 0; i < 100; ++i) texts.Add(7, TextOf(ZoneRecordKind::kState, 1'500'000, std::string(100, 'x')));
  Texted frame;
  texts.TakeOwn(frame.target);
  CHECK(frame.state.size() <= FrameTexts::kMaxStateBytes + 16);
  CHECK(frame.state.size() >= FrameTexts::kMaxStateBytes / 2);
  CHECK_THAT(frame.state, Catch::EndsWith("x; (more)"));
  for (size_t i = 0; i < 2 * FrameTexts::kMaxWaiting; ++i) {
    texts.Add(9, TextOf(ZoneRecordKind::kState, i, "never marked", 5));
  }
  texts.Add(7, TextOf(ZoneRecordKind::kState, 1'500'000, "kept"));
  Texted later;
  texts.TakeOwn(later.target);
  CHECK(later.state == "kept");
}

// Returns the states of all frames of a loop that have one.
std::vector<std::string> StatesOf(const Profile& profile, std::string_view loop) {
  std::vector<std::string> states;
  for (const ProfileZone& zone : profile.zones) {
    if (!zone.is_frame || zone.state == 0 || !profile.strings[zone.name].starts_with(loop)) continue;
    states.push_back(profile.strings[zone.name] + ": " + profile.strings[zone.state]);
  }
  return states;
}

TEST_CASE("a frame has the state that was attached to it, kept or not", "[frame_texts][law]") {
  const bool keeps = GENERATE(false, true);
  FrameCounter frames({.events = {"page-faults"}});
  const FrameId audio = frames.DefineFrame("audio");
  SessionOptions options = Keeping(frames, {.worst = 64});
  if (!keeps) options.keep.reset();
  absl::StatusOr<Session> session = Session::Start(std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark();
  frames.Mark(audio);
  const std::string longest(256, 'x'), longer(257, 'y');
  for (int frame = 1; frame <= 20; ++frame) {
    if (frame == 3) frames.AttachState("level=3, players=64");
    if (frame == 5) {
      frames.AttachState("first");
      std::thread([&] { frames.AttachState("of another thread"); }).join();
      frames.AttachState(audio, "buffer=2");
    }
    if (frame == 7) frames.AttachState(longest);
    if (frame == 9) frames.AttachState(longer);
    frames.Mark();
    frames.Mark(audio);
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  REQUIRE(profile->Check() == absl::OkStatus());
  const std::vector<std::string> states = StatesOf(*profile, "frame");
  REQUIRE(states.size() == 4);
  CHECK_THAT(states[0], Catch::EndsWith(": level=3, players=64"));
  CHECK_THAT(states[1], Catch::EndsWith(": first; of another thread"));
  CHECK_THAT(states[2], Catch::EndsWith(": " + longest));
  CHECK_THAT(states[3], Catch::EndsWith(": " + longer.substr(1) + "... (cut)"));
  const std::vector<std::string> of_audio = StatesOf(*profile, "audio");
  REQUIRE(of_audio.size() == 1);
  CHECK_THAT(of_audio[0], Catch::EndsWith(": buffer=2"));
  const auto frame = std::ranges::find_if(profile->zones, [](const ProfileZone& zone) { return zone.state != 0; });
  const SlowFrame slow = ExplainFrame(*profile, static_cast<uint32_t>(frame - profile->zones.begin()));
  CHECK_THAT(FormatSlowFrame(*profile, slow), Catch::Contains("\n  state: level=3, players=64\n"));
  CHECK_THAT(FormatSlowFrame(*profile, slow), !Catch::Contains("kept:"));
}

}  // namespace
}  // namespace perfkit::session
