// What the writers hold beside a profile: their memory does not grow with the file. pprof and Perfetto: pprof_test.cc,
// perfetto_test.cc.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "perfkit/exporters.h"
#include "perfkit/profile_builder.h"
#include "tests/exporters/large_profile.h"
#include "tests/support/allocations.h"
#include "tests/support/work.h"

namespace perfkit::testing {
namespace {

using Writer = absl::Status (*)(const Profile&, const WriteOptions&, ProfileSink);

struct Written {
  int64_t most = 0;  // bytes held at any piece, beside the profile
  size_t bytes = 0;  // of the file
};

Written Write(Writer write, const Profile& profile) {
  const int64_t before = bytes_held;
  Written written;
  const absl::Status status = write(profile, {}, [&](std::string_view piece) {
    written.most = std::max(written.most, bytes_held - before);
    written.bytes += piece.size();
    return absl::OkStatus();
  });
  CHECK(status == absl::OkStatus());
  return written;
}

TEST_CASE("what a writer holds does not grow with the number of samples", "[exporters][memory]") {
  const struct {
    const char* name;
    Writer write;
    int64_t bytes_a_sample;  // Chrome sorts the samples of a thread by index.
  } writers[] = {{"folded", WriteFolded, 0},
                 {"callgrind", WriteCallgrind, 0},
                 {"firefox", WriteFirefox, 0},
                 {"chrome", WriteChrome, 8},
                 {"html", WriteHtml, 0}};
  constexpr uint32_t kFew = 10'000, kMany = 200'000;
  Profile small = LargeProfile(kFew), large = LargeProfile(kMany);
  for (Profile* const profile : {&small, &large}) {
    for (ProfileSample& sample : profile->samples) sample.time_ns *= 1'000'000;  // Chrome's format has microseconds
  }
  for (const auto& [name, write, bytes_a_sample] : writers) {
    const Written few = Write(write, small), many = Write(write, large);
    INFO(name << ": " << few.most << " bytes held, then " << many.most);
    CHECK(few.bytes > 0);
    CHECK(many.most < few.most + (64 << 10) + bytes_a_sample * (kMany - kFew));
  }
}

// What profile_builder.h states. Each number of stacks from a power of two on has just made the tables grow.
TEST_CASE("a distinct stack takes at most 128 bytes, and 24 once the profile is taken", "[exporters][memory]") {
  constexpr int64_t kFirst = 4 << 10;
  const int64_t before = bytes_held;
  ProfileBuilder builder;
  uint32_t stack = ProfileStack::kRoot;
  const int64_t own = bytes_held - before;
  constexpr uint32_t kStacks = 70'000;
  for (uint32_t i = 0; i < kStacks; ++i) {
    stack = builder.Stack(i % 30 == 0 ? ProfileStack::kRoot : stack, i);
    CHECK_FALSE(bytes_held - before - own > kFirst + 128 * int64_t{i + 1});
  }
  const Profile profile = builder.Take();
  CHECK(profile.stacks.size() == kStacks);
  CHECK(bytes_held - before < kFirst + own + 24 * int64_t{kStacks});
}

// A sanitizer's allocator is not counted (allocations.h): less is written there.
TEST_CASE("a file of 100 MB is written in some bytes an entry", "[exporters][memory]") {
  constexpr uint32_t kZones = testing::kSanitized ? 100'000 : 1'000'000;
  ProfileBuilder builder;
  builder.AddThread(1, 1, "main");
  const uint32_t name = builder.String("World::Step(float) of a level");
  Profile profile = builder.Take();
  profile.zones.reserve(kZones);
  for (uint64_t i = 0; i < kZones; ++i) {
    profile.zones.push_back({.from_ns = 2'000 * i, .to_ns = 2'000 * i + 1'000, .name = name});
  }
  const Written written = Write(WriteChrome, profile);
  CHECK(written.bytes > uint64_t{100} * kZones);
  // Zones are sorted: an entry for each, in a vector that may be up to twice as large.
  CHECK(written.most < (1 << 20) + 64 * int64_t{kZones});
}

// Each zone begins and ends: two times with what is open from then on. Names of frames are all different.
TEST_CASE("the labels of a million zones take less than 160 bytes a zone", "[exporters][memory]") {
  constexpr uint64_t kZones = testing::kSanitized ? 100'000 : 1'000'000, kInFrame = 10;
  ProfileBuilder builder;
  builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  builder.AddThread(1, 1, "main");
  std::vector<uint32_t> names;
  for (uint64_t i = 1; i < kInFrame; ++i) names.push_back(builder.String("a zone of the game " + std::to_string(i)));
  Profile profile = builder.Take();
  profile.zones.reserve(kZones);
  for (uint64_t i = 0; i < kZones; ++i) {
    const uint64_t frame = i / kInFrame, from_ns = 1'000 * i, frame_ns = 1'000 * kInFrame;
    if (i % kInFrame == 0) profile.strings.push_back("frame " + std::to_string(1 + frame));
    const auto name = static_cast<uint32_t>(profile.strings.size() - 1);
    profile.zones.push_back(
        i % kInFrame == 0 ? ProfileZone{.from_ns = from_ns, .to_ns = from_ns + frame_ns, .name = name}
                          : ProfileZone{.from_ns = from_ns, .to_ns = from_ns + 900, .name = names[i % kInFrame - 1]});
    profile.zones.back().is_frame = i % kInFrame == 0;
  }
  const int64_t before = max_bytes_held = bytes_held;
  CHECK(Write(WritePprof, profile).bytes > 0);
  INFO(max_bytes_held - before << " bytes held at most");
  CHECK(max_bytes_held - before < 160 * int64_t{kZones});
}

}  // namespace
}  // namespace perfkit::testing
