// What was merged or forgotten is missing in the frames of that time.
#include "src/session/whole_frames.h"

#include <array>
#include <catch2/catch.hpp>

#include "perfkit/profile_builder.h"

namespace perfkit::session {
namespace {

constexpr std::array<uint64_t, 2> kAllZones{};  // are known

// Two threads, ten frames of 100 ns each, in which a zone and a wait.
Profile TenFrames() {
  ProfileBuilder builder;
  builder.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
  for (uint32_t thread = 0; thread < 2; ++thread) {
    builder.AddThread(1, 1 + thread, "t");
    for (uint64_t i = 1; i <= 10; ++i) {
      builder.AddZone({.from_ns = i * 100, .to_ns = i * 100 + 100, .thread = thread, .is_frame = true});
      builder.AddZone({.from_ns = i * 100 + 10, .to_ns = i * 100 + 50, .thread = thread});
      builder.AddSample({.time_ns = i * 100 + 60, .weight = 20, .thread = thread, .event = 0});
    }
  }
  return builder.Take();
}

size_t CountWhole(const Profile& profile, uint32_t thread) {
  size_t whole = 0;
  for (const ProfileZone& zone : profile.zones) whole += zone.is_frame && zone.is_whole && zone.thread == thread;
  return whole;
}

TEST_CASE("frames are whole unless something was merged", "[whole_frames]") {
  Profile profile = TenFrames();
  MarkWholeFrames(profile, kAllZones);
  CHECK((CountWhole(profile, 0) == 10 && CountWhole(profile, 1) == 10));
}

TEST_CASE("frames from before the first single wait are not whole, if waits of their thread were merged",
          "[whole_frames]") {
  Profile profile = TenFrames();
  for (ProfileSample& sample : profile.samples) {
    if (sample.thread == 0 && sample.time_ns < 400) sample.time_ns = 0;
  }
  std::erase_if(profile.samples, [](const ProfileSample& s) { return s.time_ns != 0 && s.time_ns < 400; });
  std::stable_sort(profile.samples.begin(), profile.samples.end(),
                   [](const ProfileSample& a, const ProfileSample& b) { return a.time_ns < b.time_ns; });
  MarkWholeFrames(profile, kAllZones);
  CHECK((CountWhole(profile, 0) == 6 && CountWhole(profile, 1) == 10));  // from 460 on
}

TEST_CASE("the wait of a thread that slept all the time says nothing about when others were merged", "[whole_frames]") {
  Profile profile = TenFrames();
  for (ProfileSample& sample : profile.samples) {
    if (sample.thread == 0 && sample.time_ns < 400) sample.time_ns = 0;
  }
  std::erase_if(profile.samples, [](const ProfileSample& s) { return s.thread == 1; });
  profile.samples.push_back({.time_ns = 50, .weight = 1050, .thread = 1});
  std::stable_sort(profile.samples.begin(), profile.samples.end(),
                   [](const ProfileSample& a, const ProfileSample& b) { return a.time_ns < b.time_ns; });
  MarkWholeFrames(profile, kAllZones);
  CHECK((CountWhole(profile, 0) == 6 && CountWhole(profile, 1) == 10));
}

TEST_CASE("frames whose zones are forgotten are not whole", "[whole_frames]") {
  Profile profile = TenFrames();
  std::erase_if(profile.zones, [](const ProfileZone& zone) { return !zone.is_frame && zone.from_ns < 400; });
  MarkWholeFrames(profile, std::array<uint64_t, 2>{350, 0});
  CHECK((CountWhole(profile, 0) == 7 && CountWhole(profile, 1) == 10));  // from 400 on
}

TEST_CASE("a frame that is not whole for another reason stays so", "[whole_frames]") {
  Profile profile = TenFrames();
  for (ProfileZone& zone : profile.zones) zone.is_whole = !zone.is_frame || zone.thread == 1;
  MarkWholeFrames(profile, kAllZones);
  CHECK((CountWhole(profile, 0) == 0 && CountWhole(profile, 1) == 10));
}

}  // namespace
}  // namespace perfkit::session
