// Sessions that keep slow frames alone: which ones, what of them, and that nothing else is lost.
#include "perfkit/keep_frames.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "perfkit/frame_counter.h"
#include "tests/session/keeping.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

std::vector<ProfileZone> WholeFrames(const Profile& profile) {
  std::vector<ProfileZone> frames;
  for (const ProfileZone& zone : profile.zones) {
    if (zone.is_frame && zone.is_whole) frames.push_back(zone);
  }
  return frames;
}

const ProfileZone* FrameNamed(const Profile& profile, const std::string& name) {
  const auto found = std::ranges::find_if(
      profile.zones, [&](const ProfileZone& zone) { return zone.is_frame && profile.strings[zone.name] == name; });
  return found != profile.zones.end() ? &*found : nullptr;
}

// By its middle: times of two records are exact to some nanoseconds.
bool Contains(const ProfileZone& frame, const ProfileZone& zone) {
  const uint64_t middle_ns = zone.from_ns + (zone.to_ns - zone.from_ns) / 2;
  return zone.thread == frame.thread && frame.from_ns <= middle_ns && middle_ns < frame.to_ns;
}

// Each sample is there, or counted as merged; of a snapshot, too.
void CheckNothingIsLost(const Profile& profile) {
  CHECK(profile.Check() == absl::OkStatus());
  for (size_t i = 0; i < profile.events.size(); ++i) {
    const ProfileEvent& event = profile.events[i];
    if (event.name == kOffCpuEvent || event.name.find(" at ") != event.name.npos) continue;  // no event of the kernel's
    CHECK(profile.Total(i).samples == event.accounting.delivered);
    CHECK(profile.Total(i).weight == event.accounting.represented);
  }
  uint64_t single = 0, all = 0;
  for (const ProfileSample& sample : profile.samples) {
    all += sample.samples;
    if (!sample.merged()) single += sample.samples;
  }
  CHECK(single + profile.accounting.times_forgotten == all);
  uint64_t off_ns = 0, waited_ns = 0;
  for (const ProfileThread& thread : profile.threads) off_ns += thread.off_ns;
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  if (off_cpu != profile.events.size()) waited_ns = profile.Total(off_cpu).weight;
  CHECK(waited_ns == (off_cpu != profile.events.size() ? off_ns : 0));
}

void CheckParts(const SlowFrame& frame) {
  uint64_t ns = 0;
  int64_t excess_ns = frame.rest_ns;
  for (const FramePart& part : frame.parts) ns += part.ns, excess_ns += part.excess_ns();
  CHECK(ns == frame.ns);
  CHECK(excess_ns == frame.excess_ns());
}

TEST_CASE("the longest frames of the run are kept whole, and all else is in the totals", "[session][keep][law]") {
  constexpr size_t kFrames = 400, kWorst = 5;
  FrameCounter frames({.events = {"page-faults"}, .history_frames = 2 * kFrames});
  SessionOptions options = Keeping(frames, {.worst = kWorst, .before = 0, .references = 0});
  options.events = ClockAndFaults();
  absl::StatusOr<Session> session = Session::Start(std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark();
  for (size_t frame = 0; frame < kFrames; ++frame) {
    {
      PERFKIT_ZONE(frames, "update");
      PERFKIT_ZONE(frames, "solve");
      Fault(frame % 40);
    }
    if (frame % 97 == 50) std::this_thread::sleep_for(3ms);
    frames.Mark();
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CheckNothingIsLost(*profile);
  std::vector<uint64_t> lengths;
  for (size_t i = 0; i < frames.history().size(); ++i) lengths.push_back(frames.history()[i].wall_ns);
  std::sort(lengths.rbegin(), lengths.rend());
  const std::vector<ProfileZone> kept = WholeFrames(*profile);
  REQUIRE(kept.size() == kWorst);
  // By the FrameCounter's clock and the session's: they differ by their rounding.
  for (const ProfileZone& frame : kept) {
    const double rounding_ns = 2000 + 1e-2 * static_cast<double>(lengths[kWorst - 1]);
    CHECK(static_cast<double>(frame.to_ns - frame.from_ns) >= static_cast<double>(lengths[kWorst - 1]) - rounding_ns);
    const auto in_frame = [&](const ProfileZone& zone) { return !zone.is_frame && Contains(frame, zone); };
    CHECK(std::ranges::count_if(profile->zones, in_frame) == 2);
  }
  // Single samples are of kept frames alone.
  const size_t off_cpu = profile->EventIndex(kOffCpuEvent);
  for (const ProfileSample& sample : profile->samples) {
    if (sample.merged()) continue;
    const uint64_t end_ns = sample.time_ns + (sample.event == off_cpu ? sample.weight : 1);
    CHECK(std::ranges::any_of(
        kept, [&](const ProfileZone& frame) { return sample.time_ns < frame.to_ns && end_ns > frame.from_ns; }));
  }
  const std::vector<ProfileCounter> counts = FrameCounts(*profile);
  REQUIRE(counts.size() == 1);
  CHECK(counts[0].points.size() >= kWorst);
  CHECK(profile->zones.size() + profile->accounting.zones_forgotten == 3 * kFrames);
  CHECK(profile->accounting.frames_dropped == 0);
}

TEST_CASE("a snapshot of a session that has ended is what Stop returns", "[session][keep][law]") {
  FrameCounter frames({.events = {"page-faults"}});
  const KeepFrames none{.worst = 0, .before = 0, .references = 0};
  absl::StatusOr<Session> session = Session::Start(Keeping(frames, none));
  REQUIRE(session.status() == absl::OkStatus());
  for (int frame = 0; frame < 3; ++frame) {
    frames.Mark();
    Spin(20ms);  // The last frame is under way when sampling ends.
  }
  SessionOptions other;
  other.replace = true;
  REQUIRE(Session::Start(std::move(other)).status() == absl::OkStatus());
  REQUIRE_FALSE(session->running());
  const absl::StatusOr<Profile> snapshot = session->Snapshot(), profile = session->Stop();
  REQUIRE(snapshot.status() == absl::OkStatus());
  REQUIRE(profile.status() == absl::OkStatus());
  CheckLaws(*profile);
  CHECK(snapshot->zones.size() == profile->zones.size());
  REQUIRE(snapshot->samples.size() == profile->samples.size());
  for (size_t i = 0; i < profile->samples.size(); ++i) {
    CHECK(snapshot->samples[i].time_ns == profile->samples[i].time_ns);
    CHECK(snapshot->samples[i].weight == profile->samples[i].weight);
  }
  REQUIRE(snapshot->threads.size() == profile->threads.size());
  for (size_t i = 0; i < profile->threads.size(); ++i) {
    CHECK(snapshot->threads[i].on_ns == profile->threads[i].on_ns);
    CHECK(snapshot->threads[i].off_ns == profile->threads[i].off_ns);
  }
}

TEST_CASE("frames are kept with the program's reasons, however short", "[session][keep][law]") {
  FrameCounter frames({.events = {"page-faults"}});
  const FrameId audio = frames.DefineFrame("audio");
  frames.Keep("no session listens");
  absl::StatusOr<Session> session = Session::Start(Keeping(frames, {.worst = 1, .before = 0, .references = 0}));
  REQUIRE(session.status() == absl::OkStatus());
  const std::string long_text(300, 'x');
  frames.Mark();
  for (int frame = 0; frame < 200; ++frame) {
    PERFKIT_ZONE(frames, "update");
    if (frame == 20) frames.Keep("level=3");
    if (frame == 20) frames.Keep("players=64");
    if (frame == 21) frames.Keep(long_text);
    if (frame == 100) std::thread([&] { frames.Keep("cache miss"); }).join();
    frames.Mark();
  }
  std::thread([&] {
    for (int frame = 0; frame < 50; ++frame) {
      frames.Mark(audio);
      PERFKIT_ZONE(frames, "mix");
      if (frame == 7) frames.Keep(audio, "underrun");
    }
  }).join();
  const uint64_t first = frames.history()[frames.history().size() - 200].number;
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckNothingIsLost(*profile);
  std::map<std::string, std::string> reasons;
  for (const ProfileZone& frame : WholeFrames(*profile)) {
    if (frame.reason != 0) reasons[profile->strings[frame.name]] = profile->strings[frame.reason];
  }
  const auto name = [&](uint64_t frame) { return "frame " + std::to_string(first + frame); };
  CHECK(reasons == std::map<std::string, std::string>{{name(20), "level=3; players=64"},
                                                      {name(21), long_text.substr(0, 256) + "... (cut)"},
                                                      {name(100), "cache miss"},
                                                      {"audio 7", "underrun"}});
  const std::string text = FormatSlowFrames(*profile);
  CAPTURE(text);
  CHECK(text.find("  kept: level=3; players=64\n") != text.npos);
  CHECK(text.find("audio 7 of ") != text.npos);
}

TEST_CASE("each frame over its budget is handed over once, explained", "[session][keep][law]") {
  const size_t max_frames = GENERATE(1, 64);
  FrameCounter frames({.events = {"page-faults"}, .hitch_budget = 1s});
  const FrameId loads = frames.DefineFrame("load", 10ms);
  struct Told {
    Profile profile;
    SlowFrame frame;
    std::string name, text;
    uint64_t off_ns = 0;
  };
  std::vector<Told> told;
  const auto on_slow_frame = [&](const ExplainedFrame& slow) {
    const ProfileZone& zone = slow.profile.zones[slow.frame.zone];
    Told& now = told.emplace_back(
        Told{slow.profile, slow.frame, slow.profile.strings[zone.name], FormatSlowFrame(slow.profile, slow.frame)});
    for (const FramePart& part : slow.frame.parts) now.off_ns += part.kind != FramePart::Kind::kZone ? part.ns : 0;
  };
  absl::StatusOr<Session> session =
      Session::Start(Keeping(frames, {.worst = 1, .max_frames = max_frames, .on_slow_frame = on_slow_frame}));
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark(loads);
  for (int frame = 0; frame < 60; ++frame) {
    PERFKIT_ZONE(frames, "read");
    if (frame == 30 || frame == 40) std::this_thread::sleep_for(20ms);
    if (frame == 50) frames.Keep(loads, "quick save");
    frames.Mark(loads);
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckNothingIsLost(*profile);
  uint64_t last_ns = 0;
  for (const Told& one : told) {
    CAPTURE(one.text);
    CHECK(one.profile.Check() == absl::OkStatus());
    CHECK(one.profile.program == profile->program);
    CHECK(one.profile.realtime_offset_ns != 0);
    CheckParts(one.frame);
    CHECK(one.profile.zones[one.frame.zone].from_ns > last_ns);
    last_ns = one.profile.zones[one.frame.zone].from_ns;
    if (one.name == "load 30") CHECK(one.off_ns >= 10'000'000);
    if (one.name == "load 50") CHECK(one.text.find("kept: quick save") != one.text.npos);
  }
  for (const char* name : {"load 30", "load 40", "load 50"}) {
    CHECK(std::ranges::count_if(told, [&](const Told& one) { return one.name == name; }) == 1);
  }
  if (max_frames == 1) {
    CHECK(profile->accounting.frames_dropped >= 2);
    return;
  }
  const ProfileZone* const slept = FrameNamed(*profile, "load 30");
  REQUIRE(slept != nullptr);
  CHECK(slept->is_whole);
  CHECK(FrameNamed(*profile, "load 29") != nullptr);  // the one before
}

TEST_CASE("a callback that throws is not called again", "[session][keep]") {
  FrameCounter frames({.events = {"page-faults"}});
  int calls = 0;
  absl::StatusOr<Session> session = Session::Start(Keeping(frames, {.on_slow_frame = [&](const ExplainedFrame&) {
                                                             ++calls;
                                                             throw calls;
                                                           }}));
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark();
  for (int frame = 0; frame < 5; ++frame) {
    frames.Keep("each");
    frames.Mark();
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(calls == 1);
  const auto says = [](const std::string& note) { return note.find("on_slow_frame threw") != note.npos; };
  CHECK(std::ranges::count_if(profile->accounting.notes, says) == 1);
}

TEST_CASE("what is usual is told by references of the whole run", "[session][keep]") {
  constexpr size_t kReferences = 20, kFrames = 300;
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session = Session::Start(Keeping(frames, {.worst = 2, .references = kReferences}));
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark();
  for (size_t frame = 0; frame < kFrames; ++frame) {
    PERFKIT_ZONE(frames, "update");
    frames.Mark();
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckNothingIsLost(*profile);
  CHECK(std::ranges::count_if(profile->zones, [](const auto& zone) { return zone.is_reference; }) == kReferences);
  for (const ProfileZone& zone : profile->zones) CHECK((!zone.is_reference || zone.is_whole));
  for (const SlowFrame& frame : FindSlowFrames(*profile, {.frames = 10})) CheckParts(frame);
}

// What is kept is bounded by its number, what is merged by threads and stacks.
TEST_CASE("memory stays the same however many frames there are", "[session][keep][law]") {
  FrameCounter frames({.events = {"page-faults"}, .hitch_budget = 1ns});  // each is over it
  SessionOptions options = Keeping(frames, {.worst = 4, .max_frames = 8, .references = 8}, 128 << 10);
  options.own_thread = false;
  absl::StatusOr<Session> session = Session::Start(std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  constexpr int kFrames = 10'000, kPart = 2'500;
  size_t max_zones = 0, max_singles = 0;
  frames.Mark();
  for (int frame = 0; frame < kFrames; ++frame) {
    {
      PERFKIT_ZONE(frames, "update");
      PERFKIT_ZONE(frames, "solve");
    }
    frames.Mark();
    if (frame % 250 == 249) REQUIRE(session->Poll() == absl::OkStatus());
    if (frame % kPart != kPart - 1) continue;
    const absl::StatusOr<Profile> profile = session->Snapshot();
    REQUIRE(profile.status() == absl::OkStatus());
    CheckNothingIsLost(*profile);
    CHECK(profile->zones.size() + profile->accounting.zones_forgotten >= 3 * static_cast<size_t>(frame - 250));
    max_zones = std::max(max_zones, profile->zones.size());
    const auto singles = std::ranges::count_if(profile->samples, [](const auto& sample) { return !sample.merged(); });
    max_singles = std::max(max_singles, static_cast<size_t>(singles));
  }
  CHECK(max_zones * sizeof(ProfileZone) <= 256 << 10);
  CHECK(max_singles * sizeof(ProfileSample) <= 128 << 10);
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckNothingIsLost(*profile);
  // Slow ones, the one before each, and references.
  CHECK(WholeFrames(*profile).size() <= 8 * 2 + 8);
  CHECK(profile->accounting.frames_dropped > 0);
}

TEST_CASE("a snapshot within a frame has what the frame did so far", "[session][keep]") {
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session = Session::Start(Keeping(frames, {.worst = 2, .references = 4}));
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark();
  for (int frame = 0; frame < 20; ++frame) {
    PERFKIT_ZONE(frames, "update");
    frames.Mark();
  }
  PERFKIT_ZONE(frames, "open");
  frames.Keep("under way");
  const absl::StatusOr<Profile> snapshot = session->Snapshot();
  REQUIRE(snapshot.status() == absl::OkStatus());
  CheckNothingIsLost(*snapshot);
  const auto is_open = [&](const ProfileZone& zone) { return snapshot->strings[zone.name] == "open"; };
  CHECK(std::ranges::count_if(snapshot->zones, is_open) == 1);
  frames.Mark();
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckNothingIsLost(*profile);
  CHECK(std::ranges::count_if(profile->zones, [](const auto& zone) { return zone.reason != 0; }) == 1);
}

// Everything at once: followers, samples that are merged early, batches, snapshots, pauses.
TEST_CASE("batches have all samples, those that are merged, too", "[session][keep][law]") {
  FrameCounter frames({.events = {"page-faults"}});
  SessionOptions options = Keeping(frames, {.worst = 2, .references = 4}, 64 << 10);
  options.events = {{.event = "task-clock", .rate = Period{200'000}, .followers = {"page-faults", "minor-faults"}},
                    {.event = "page-faults", .rate = Period{1}}};
  std::map<size_t, uint64_t> given;  // weights by event
  options.on_batch = [&](const SessionBatch& batch) {
    for (const ProfileSample& sample : batch.samples) given[sample.event] += sample.weight;
  };
  absl::StatusOr<Session> session = Session::Start(std::move(options));
  REQUIRE(session.status() == absl::OkStatus());
  frames.Mark();
  for (int frame = 0; frame < 300; ++frame) {
    {
      PERFKIT_ZONE(frames, "update");
      Fault(30);
      Spin(50us);
    }
    if (frame % 50 == 20) frames.Keep("now and then");
    if (frame % 50 == 25) std::this_thread::sleep_for(1ms);
    frames.Mark();
    if (frame % 60 == 30) {
      const absl::StatusOr<Profile> snapshot = session->Snapshot();
      REQUIRE(snapshot.status() == absl::OkStatus());
      CheckNothingIsLost(*snapshot);
    }
    if (frame % 100 == 70) REQUIRE(session->Pause() == absl::OkStatus());
    if (frame % 100 == 80) REQUIRE(session->Resume() == absl::OkStatus());
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CheckNothingIsLost(*profile);
  for (size_t event = 0; event < profile->events.size(); ++event) {
    INFO(profile->events[event].name);
    CHECK(given[event] == profile->Total(event).weight);
  }
  CHECK(profile->accounting.times_forgotten > 0);
  for (const SlowFrame& frame : FindSlowFrames(*profile, {.frames = 100})) CheckParts(frame);
}

TEST_CASE("a session without frames, or of a flight recorder, keeps none", "[session][keep]") {
  FrameCounter frames({.events = {"page-faults"}});
  CHECK(Session::Start({.keep = KeepFrames{}}).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(Session::Start({.mode = RingMode::kOverwrite, .frames = &frames, .keep = KeepFrames{}}).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace perfkit::session
