// Frames under faults: counting is disabled and enabled again, and a session keeps frames. A frame's count is right, or
// said to be missing; a frame that was kept is there, or a note says why not.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "perfkit/frame_counter.h"
#include "perfkit/session.h"
#include "tests/support/fault_table.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Faults;
using testing::RunFaults;

constexpr size_t kFramePages = 24, kSessionFrames = 8, kKeptFrame = 5;

void TouchInZone(FrameCounter& frames, const char* name, testing::FreshPages& memory, size_t part) {
  const FrameCounter::Zone zone(frames, ZoneId{name});
  memory.Touch(part * kFramePages, kFramePages);
}

// Counts in zones before, during and after a time in which counting is disabled.
absl::Status DisableAndEnable(Faults& faults, const FrameOptions& options) {
  FrameCounter frames(options);
  testing::FreshPages memory(3 * kFramePages);
  const testing::OtherFaults others;
  frames.Mark();
  TouchInZone(frames, "before", memory, 0);
  frames.Mark();
  faults.Begin();
  frames.SetEnabled(false);
  CHECK_FALSE(frames.enabled());
  TouchInZone(frames, "disabled", memory, 1);
  frames.Mark();
  frames.SetEnabled(true);
  CHECK(frames.enabled());
  TouchInZone(frames, "after", memory, 2);
  frames.Mark();
  faults.End();
  const uint64_t beside = others.Beside(3 * kFramePages);
  absl::Status status;
  bool has_before = false, has_after = false;
  for (const ZoneStats& zone : frames.zones()) {
    INFO(zone.name << " " << zone.total[0].value);
    CHECK(zone.name != "disabled");
    has_before |= zone.name == "before";
    has_after |= zone.name == "after";
    if (zone.name != "before" && zone.name != "after") continue;
    CHECK(zone.calls == 1);
    if (zone.name == "before") CHECK(zone.total[0].validity.counted());
    if (zone.total[0].validity.counted()) {
      CHECK(testing::AreFaultsOf(zone.total[0].value, kFramePages, beside));
    } else {
      status.Update(absl::UnavailableError("a zone without number says so"));
    }
  }
  CHECK(has_before);
  CHECK(has_after);
  // What came before the first zone is not in the frame.
  const FrameRecord& last = frames.last();
  if ((last.missing & 1) == 0) CHECK(testing::AreFaultsOf(last.values[0], kFramePages, beside));
  if (faults.none()) CHECK(status == absl::OkStatus());
  return status;
}

TEST_CASE("a frame counter is disabled and enabled again", "[faults]") {
  const auto use = [](const char* name, std::optional<ReadPath> only_path) {
    RunFaults(name, [&](Faults& faults) {
      return DisableAndEnable(faults, {.events = {"page-faults"}, .only_path = only_path});
    });
  };
  use("`FrameCounter::SetEnabled`", std::nullopt);
  use("`FrameCounter::SetEnabled`, group reads", ReadPath::kGroupRead);
}

bool NotesSay(const Profile& profile, std::string_view part) {
  return std::ranges::any_of(profile.accounting.notes,
                             [&](const std::string& note) { return note.find(part) != note.npos; });
}

// Each sample is there, or counted as merged, and the times off the CPU are those of the threads.
void CheckNothingLost(const Profile& profile) {
  REQUIRE(profile.Check() == absl::OkStatus());
  const size_t off_cpu = profile.EventIndex(kOffCpuEvent);
  for (size_t i = 0; i < profile.events.size(); ++i) {
    INFO(profile.events[i].name);
    if (i != off_cpu) CHECK(profile.Total(i).samples == profile.events[i].accounting.delivered);
  }
  uint64_t single = 0, all = 0, off_ns = 0;
  for (const ProfileSample& sample : profile.samples) {
    all += sample.samples;
    single += sample.merged() ? 0 : sample.samples;
  }
  CHECK(single + profile.accounting.times_forgotten == all);
  for (const ProfileThread& thread : profile.threads) off_ns += thread.off_ns;
  if (off_cpu != profile.events.size()) CHECK(profile.Total(off_cpu).weight == off_ns);
}

// Returns whether the frame with a reason is in the profile as a whole.
bool HasKeptFrame(const Profile& profile, const FrameCounter& frames) {
  CHECK(profile.zones.size() + profile.accounting.zones_forgotten + profile.accounting.zone_records_lost >=
        2 * kSessionFrames);
  const uint64_t number = frames.last().number - (kSessionFrames - 1) + kKeptFrame;
  bool found = false;
  for (const ProfileZone& zone : profile.zones) {
    if (!zone.is_frame || zone.reason == 0) continue;
    CHECK_FALSE(found);
    CHECK(profile.strings[zone.reason] == "level=3");
    CHECK(profile.strings[zone.name] == "frame " + std::to_string(number));
    found = zone.is_whole;
  }
  return found;
}

// The counts of frames in the profile, and those of the frame counter.
void CheckFrameCounts(const Profile& profile, const FrameCounter& frames, uint64_t beside) {
  for (const ProfileCounter& counter : profile.counters) {
    if (profile.strings[counter.name] != "page-faults") continue;
    for (const ProfileCounter::Point& point : counter.points) {
      INFO(point.value);
      CHECK(testing::AreFaultsOf(static_cast<uint64_t>(point.value), kFramePages, beside));
    }
  }
  for (size_t i = 0; i < frames.history().size(); ++i) {
    const FrameRecord& frame = frames.history()[i];
    INFO(frame.number << ": " << frame.values[0]);
    if ((frame.missing & 1) == 0) CHECK(testing::AreFaultsOf(frame.values[0], kFramePages, beside));
  }
}

SessionOptions Keeping(const FrameCounter& frames, size_t& explained) {
  SessionOptions options{.events = {{.event = "page-faults", .rate = Period{1}}},
                         .clock = SessionClock::kWall,
                         .stacks = SessionStacks::kNone,
                         .memory_bytes = 1 << 20,
                         .user_only = true,
                         .frames = &frames,
                         .own_thread = false,
                         .lines = false};
  options.keep = KeepFrames{.worst = 1, .before = 0, .references = 2, .on_slow_frame = [&](const ExplainedFrame& slow) {
                              ++explained;
                              CHECK(slow.profile.Check() == absl::OkStatus());
                              uint64_t ns = 0;
                              for (const FramePart& part : slow.frame.parts) ns += part.ns;
                              CHECK(ns == slow.frame.ns);
                            }};
  return options;
}

TEST_CASE("a session keeps a frame that the program asks for", "[faults]") {
  RunFaults("`Session`: kept frames, `FrameCounter::Keep`", [](Faults& faults) -> absl::Status {
    FrameCounter frames({.events = {"page-faults"}, .only_path = ReadPath::kGroupRead});
    size_t explained = 0;
    testing::FreshPages memory(kSessionFrames * kFramePages);
    faults.Begin();
    absl::StatusOr<Session> session = Session::Start(Keeping(frames, explained));
    if (!session.ok()) return session.status();
    const testing::OtherFaults others;
    absl::Status first;
    frames.Mark();
    for (size_t frame = 0; frame < kSessionFrames; ++frame) {
      TouchInZone(frames, "update", memory, frame);
      if (frame == kKeptFrame) frames.Keep("level=3");
      if (frame % 4 == 2) first.Update(session->Poll());
      frames.Mark();
    }
    const uint64_t beside = others.Beside(kSessionFrames * kFramePages);
    const absl::StatusOr<Profile> profile = session->Stop();
    faults.End();
    first.Update(profile.status());
    if (!profile.ok()) return first;
    CheckNothingLost(*profile);
    CheckFrameCounts(*profile, frames, beside);
    const bool no_zones = NotesSay(*profile, "no zones and frames");
    const bool has_frame = !no_zones && HasKeptFrame(*profile, frames);
    if (faults.none()) CHECK(has_frame);
    CHECK(explained <= 1);
    if (has_frame && explained == 0) CHECK(NotesSay(*profile, "not given to on_slow_frame"));
    if (!has_frame) first.Update(absl::DataLossError("no frame, and says so"));
    return first;
  });
}

}  // namespace
}  // namespace perfkit
