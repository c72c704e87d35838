// Slow frames of a program that runs, and that knows itself where its frames were slow.
#include "perfkit/slow_frames.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "perfkit/frame_counter.h"
#include "tests/session/support.h"
#include "tests/support/measurement.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

const SlowFrame* FrameAt(const std::vector<SlowFrame>& slow, const Profile& profile, uint64_t time_ns) {
  const auto found = std::ranges::find_if(slow, [&](const SlowFrame& frame) {
    const ProfileZone& zone = profile.zones[frame.zone];
    return zone.from_ns <= time_ns && time_ns < zone.to_ns;
  });
  return found != slow.end() ? &*found : nullptr;
}

uint64_t NsOf(const SlowFrame& frame, std::string_view zone) {
  uint64_t ns = 0;
  for (const FramePart& part : frame.parts)
    ns += part.kind == FramePart::Kind::kZone && part.name == zone ? part.ns : 0;
  return ns;
}

uint64_t OffCpuNs(const SlowFrame& frame) {
  uint64_t ns = 0;
  for (const FramePart& part : frame.parts) ns += part.kind != FramePart::Kind::kZone ? part.ns : 0;
  return ns;
}

// Whatever else the machine does: a thread that sleeps is off its CPU, and one that has spent CPU time in a zone was on
// it. Returns false if a part is shorter by a tenth: the records of switches say so a little later or earlier than the
// clocks, and a hypervisor takes time that neither tells.
bool PartsAreWhatWasDone() {
  constexpr int kFrames = 40, kSlept = 20, kSpun = 30;
  constexpr auto kLong = 30ms;
  constexpr uint64_t kLongNs = 30'000'000;
  FrameCounter frames({.events = {"page-faults"}});
  absl::StatusOr<Session> session =
      Session::Start({.clock = SessionClock::kWall, .stacks = SessionStacks::kNone, .frames = &frames});
  REQUIRE(session.status() == absl::OkStatus());
  uint64_t slept_at_ns = 0, spun_at_ns = 0;
  frames.Mark();
  for (int frame = 0; frame < kFrames; ++frame) {
    {
      PERFKIT_ZONE(frames, "update");
      PERFKIT_ZONE(frames, "solve");
      if (frame == kSpun) spun_at_ns = sys::ClockNs(CLOCK_MONOTONIC);
      Spin(frame == kSpun ? kLong : 100us);
    }
    if (frame == kSlept) {
      slept_at_ns = sys::ClockNs(CLOCK_MONOTONIC);
      std::this_thread::sleep_for(kLong);
    }
    frames.Mark();
  }
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  REQUIRE(profile->Check() == absl::OkStatus());
  const std::vector<SlowFrame> slow = FindSlowFrames(*profile, {.frames = kFrames});
  for (const SlowFrame& frame : slow) {
    uint64_t ns = 0;
    int64_t excess_ns = frame.rest_ns;
    for (const FramePart& part : frame.parts) ns += part.ns, excess_ns += part.excess_ns();
    CHECK(ns == frame.ns);
    CHECK(excess_ns == frame.excess_ns());
  }
  INFO(FormatSlowFrames(*profile, {.frames = kFrames}));
  const SlowFrame* const slept = FrameAt(slow, *profile, slept_at_ns + kLongNs / 2);
  const SlowFrame* const spun = FrameAt(slow, *profile, spun_at_ns + kLongNs / 2);
  REQUIRE((slept != nullptr && spun != nullptr));
  CHECK(OffCpuNs(*slept) >= kLongNs / 2);
  CHECK(NsOf(*spun, "update/solve") >= kLongNs / 2);
  return OffCpuNs(*slept) >= kLongNs * 9 / 10 && NsOf(*spun, "update/solve") >= kLongNs * 9 / 10;
}

TEST_CASE("a slow frame's parts are what the thread did in it", "[session][zones][measurement]") {
  CHECK(testing::HoldsOnceInThree(PartsAreWhatWasDone));
}

}  // namespace
}  // namespace perfkit::session
