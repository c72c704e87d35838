// A recorder that runs for long. One frame in a hundred is a hitch. Memory stays flat, and no hitch is lost while there
// is room for it.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "perfkit/frame_counter.h"
#include "tests/session/soak.h"
#include "tests/session/support.h"

namespace perfkit::session {

inline constexpr uint64_t kSoakBudgetNs = 2'000'000;

// Each hitch takes some 3 ms, for another reason each time.
inline void PlaySoakFrame(FrameCounter& frames, size_t frame, bool is_hitch) {
  PERFKIT_ZONE(frames, "update");
  {
    PERFKIT_ZONE(frames, "solve");
    Spin(std::chrono::microseconds(30));
  }
  Fault(4);
  if (!is_hitch) return;
  frames.Keep("hitch " + std::to_string(frame));
  PERFKIT_ZONE(frames, "hitch");
  if (frame % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  if (frame % 3 == 1) Spin(std::chrono::milliseconds(3));
  if (frame % 3 == 2) Fault(3'000);
}

// How many slow frames the notes say were not handed over.
inline size_t NotGiven(const Profile& profile) {
  size_t frames = 0;
  for (const std::string& note : profile.accounting.notes) {
    if (note.find("not given to on_slow_frame") != note.npos) frames += std::stoul(note);
  }
  return frames;
}

// Frames over the budget or with a reason, by the FrameCounter. Times of two clocks are compared, so that a frame of
// nearly the budget may be either.
struct SlowFrames {
  size_t at_least = 0, at_most = 0;
};

inline SlowFrames CountSlow(const FrameCounter& frames, const std::set<uint64_t>& hitches) {
  SlowFrames slow;
  for (size_t i = 0; i < frames.history().size(); ++i) {
    const FrameRecord& record = frames.history()[i];
    const bool has_reason = hitches.contains(record.number);
    const uint64_t rounding_ns = 2'000 + record.wall_ns / 100;
    slow.at_least += has_reason || record.wall_ns > kSoakBudgetNs + rounding_ns ? 1 : 0;
    slow.at_most += has_reason || record.wall_ns + rounding_ns > kSoakBudgetNs ? 1 : 0;
  }
  return slow;
}

// All hitches that there is room for beside the worst are kept: the latest ones.
inline void CheckLatestAreKept(const std::set<uint64_t>& hitches, const std::set<uint64_t>& kept, size_t room) {
  size_t latest = 0;
  for (auto hitch = hitches.rbegin(); hitch != hitches.rend() && latest < room; ++hitch, ++latest) {
    if (!kept.contains(*hitch)) CHECK(kept.contains(*hitch));
  }
}

// `is_flat`: memory is looked at, too. In the first half, bounded tables reach their size.
inline void SoakFrames(size_t count, bool is_flat) {
  constexpr size_t kWorst = 8, kMaxFrames = 100, kNames = 2;
  FrameCounter frames({.events = {"page-faults"},
                       .hitch_budget = std::chrono::nanoseconds(kSoakBudgetNs),
                       .history_frames = count + 1});
  size_t told = 0, without_sum = 0;
  const auto on_slow_frame = [&](const ExplainedFrame& slow) {
    ++told;
    int64_t share_ns = 0;
    for (const FrameCause& cause : slow.frame.causes) share_ns += cause.share_ns;
    without_sum += share_ns == slow.frame.excess_ns() ? 0 : 1;
  };
  absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall,
                                                    .memory_bytes = 4 << 20,
                                                    .frames = &frames,
                                                    .keep = KeepFrames{.worst = kWorst,
                                                                       .worst_by = {"solve", "page-faults"},
                                                                       .max_frames = kMaxFrames,
                                                                       .on_slow_frame = on_slow_frame},
                                                    .lines = false});
  REQUIRE(session.status() == absl::OkStatus());
  std::set<uint64_t> hitches;
  size_t first_half = 0, second_half = 0;
  frames.Mark();
  for (size_t frame = 0; frame < count; ++frame) {
    const bool is_hitch = frame % 100 == 50;
    PlaySoakFrame(frames, frame, is_hitch);
    frames.Mark();
    if (is_hitch) hitches.insert(frames.last().number);
    if (frame % 500 != 499) continue;
    size_t& most = frame < count / 2 ? first_half : second_half;
    most = std::max(most, HeldBytes().value_or(0));
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->Check() == absl::OkStatus());
  std::set<uint64_t> kept;
  for (const ProfileZone& zone : profile->zones) {
    if (zone.reason != 0 && zone.is_whole) kept.insert(std::stoull(profile->strings[zone.name].substr(6)));
  }
  const SlowFrames slow = CountSlow(frames, hitches);
  const size_t not_given = NotGiven(*profile);
  std::string notes;
  for (const std::string& note : profile->accounting.notes) notes += note + "\n";
  CAPTURE(count, hitches.size(), kept.size(), told, not_given, slow.at_least, slow.at_most, first_half, second_half,
          profile->accounting.frames_dropped, profile->accounting.zone_records_lost, notes);
  CHECK(without_sum == 0);
  // Each slow frame is told, or counted.
  CHECK(told + not_given >= slow.at_least);
  CHECK(told + not_given <= slow.at_most);
  CheckLatestAreKept(hitches, kept, kMaxFrames - kWorst * (1 + kNames));
  CHECK(kept.size() <= kMaxFrames);
  CHECK(kept.size() + profile->accounting.frames_dropped >= hitches.size());
  if (!is_flat) return;
  CHECK(second_half <= first_half + (1 << 20));
  WARN(count << " frames, " << hitches.size() << " hitches: " << kept.size() << " kept, " << told << " told, "
             << not_given << " counted; at most " << (first_half >> 10) << " KiB in the first half, "
             << (second_half >> 10) << " in the second");
}

}  // namespace perfkit::session
