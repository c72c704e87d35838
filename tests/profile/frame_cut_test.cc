// The part of a profile that shows a frame: it has the frame's parts to the nanosecond, and nothing that is not used.
#include "src/profile/frame_cut.h"

#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "tests/exporters/any_profile.h"
#include "tests/exporters/hitch_profile.h"

namespace perfkit::profile {
namespace {

using PartKey = std::pair<FramePart::Kind, std::string>;

std::map<PartKey, uint64_t> PartsOf(const SlowFrame& frame) {
  std::map<PartKey, uint64_t> parts;
  for (const FramePart& part : frame.parts) {
    if (part.ns != 0) parts[{part.kind, part.name}] += part.ns;
  }
  return parts;
}

// The parts of the spans in the frame's time, and that the spans have no gaps.
std::map<PartKey, uint64_t> SpanSums(const FrameCut& cut) {
  std::map<PartKey, uint64_t> sums;
  const ProfileZone& frame = cut.profile.zones[cut.frame.zone];
  for (uint32_t thread = 0; thread < cut.profile.threads.size(); ++thread) {
    uint64_t at_ns = cut.from_ns;
    for (const FrameSpan& span : cut.spans[thread]) {
      CHECK(span.ns != 0);
      CHECK((at_ns >= frame.from_ns || at_ns + span.ns <= frame.from_ns));  // none goes over the frame's begin
      const bool is_ours = thread == frame.thread && at_ns >= frame.from_ns;
      at_ns += span.ns;
      if (span.sample != ThreadParts::kNoSample) CHECK(cut.profile.samples[span.sample].thread == thread);
      if (!is_ours) continue;
      REQUIRE(span.part != FrameSpan::kUnknown);
      sums[{cut.names[span.part].kind, cut.names[span.part].text}] += span.ns;
    }
    CHECK(at_ns == frame.to_ns);
  }
  return sums;
}

std::string StackText(const Profile& profile, uint32_t stack) {
  std::string text;
  for (; stack != ProfileStack::kRoot; stack = profile.stacks[stack].parent) {
    const uint32_t location = profile.stacks[stack].location;
    text += profile.UnnamedCode(location);
    for (const ProfileCall& call : profile.CallsAt(location)) {
      text += " " + profile.CallName(location, call) + " " + profile.strings[call.file] + std::to_string(call.line);
    }
    text += ";";
  }
  return text;
}

void CheckSameStacks(const Profile& profile, const SlowFrame& frame, const FrameCut& cut) {
  REQUIRE(cut.frame.parts.size() == frame.parts.size());
  for (size_t i = 0; i < frame.parts.size(); ++i) {
    CHECK(StackText(cut.profile, cut.frame.parts[i].stack) == StackText(profile, frame.parts[i].stack));
    CHECK((cut.frame.parts[i].wait == ProfileSample::kNoWait) == (frame.parts[i].wait == ProfileSample::kNoWait));
  }
  for (size_t i = 0; i < frame.causes.size(); ++i) {
    const FrameCause &cause = frame.causes[i], &taken = cut.frame.causes[i];
    CHECK(StackText(cut.profile, taken.stack) == StackText(profile, cause.stack));
    CHECK(StackText(cut.profile, taken.thread_stack) == StackText(profile, cause.thread_stack));
    CHECK(FormatFrameCause(cut.profile, taken) == FormatFrameCause(profile, cause));
  }
  REQUIRE(cut.frame.others.size() == frame.others.size());
  for (size_t i = 0; i < frame.others.size(); ++i) {
    const FrameThread &other = frame.others[i], &taken = cut.frame.others[i];
    CHECK(cut.profile.ThreadName(taken.thread) == profile.ThreadName(other.thread));
    CHECK(StackText(cut.profile, taken.stack) == StackText(profile, other.stack));
  }
  for (size_t i = 0; i < frame.counts.size(); ++i) {
    CHECK(StackText(cut.profile, cut.frame.counts[i].stack) == StackText(profile, frame.counts[i].stack));
  }
}

TEST_CASE("the cut of a frame has its parts, with or without the frames that it is compared with",
          "[profile][frame_cut]") {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    const Profile profile = testing::HitchProfile(seed).Make();
    const SlowFrame frame = testing::HitchOf(profile);
    for (const References references : {References::kTake, References::kLeave}) {
      const FrameCut cut = CutFrame(profile, frame, references);
      CHECK(cut.profile.Check() == absl::OkStatus());
      CHECK(SpanSums(cut) == PartsOf(frame));
      CheckSameStacks(profile, frame, cut);
      CHECK(cut.text == FormatSlowFrame(profile, frame));
      CHECK(cut.compared == 39);
      CHECK(cut.references.size() == (references == References::kTake ? 39 : 0));
      CHECK(cut.silent_threads == 1);
      // Two frames before it.
      CHECK(cut.from_ns == profile.zones[frame.zone].from_ns - [&] {
        uint64_t ns = 0;
        for (const ProfileZone& zone : profile.zones) {
          const std::string& name = profile.strings[zone.name];
          if (name == "frame 28" || name == "frame 29") ns += zone.to_ns - zone.from_ns;
        }
        return ns;
      }());
    }
  }
}

TEST_CASE("a frame that is the only reference is compared with itself, which the cut leaves out",
          "[profile][frame_cut]") {
  Profile profile = testing::HitchProfile(1).Make();
  for (ProfileZone& zone : profile.zones) zone.is_reference = false;
  const uint32_t zone = testing::HitchOf(profile).zone;
  profile.zones[zone].is_reference = true;
  const SlowFrame frame = ExplainFrame(profile, zone);
  CHECK(frame.excess_ns() == 0);
  const FrameCut cut = CutFrame(profile, frame, References::kTake);
  CHECK((cut.compared == 0 && cut.references.empty()));
}

TEST_CASE("a cut has the names of its spans alone", "[profile][frame_cut]") {
  Profile profile = testing::HitchProfile(1).Make();
  const SlowFrame frame = testing::HitchOf(profile);
  // In a frame long after it.
  profile.strings.emplace_back("elsewhere");
  ProfileZone zone = profile.zones[frame.zone];
  zone.from_ns = zone.to_ns + 1'000'000'000, zone.to_ns = zone.from_ns + 1;
  zone.name = static_cast<uint32_t>(profile.strings.size() - 1);
  zone.is_frame = false;
  profile.zones.push_back(zone);
  const FrameCut cut = CutFrame(profile, frame, References::kTake);
  std::set<uint32_t> used;
  for (const std::vector<FrameSpan>& spans : cut.spans) {
    for (const FrameSpan& span : spans) {
      if (span.part != FrameSpan::kUnknown) used.insert(span.part);
    }
  }
  CHECK(used.size() == cut.names.size());
}

TEST_CASE("the cut of any frame of any profile is a profile, and its spans have no gaps", "[profile][frame_cut]") {
  size_t frames = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    const Profile profile = testing::AnyProfile(seed).Make();
    for (uint32_t zone = 0; zone < profile.zones.size(); ++zone) {
      if (!profile.zones[zone].is_frame) continue;
      ++frames;
      const SlowFrame frame = ExplainFrame(profile, zone);
      REQUIRE(CheckFrame(profile, frame) == absl::OkStatus());
      const FrameCut cut = CutFrame(profile, frame, References::kTake);
      CHECK(cut.profile.Check() == absl::OkStatus());
      CHECK(cut.profile.zones[cut.frame.zone].is_frame);
      CHECK(SpanSums(cut) == PartsOf(frame));
      CheckSameStacks(profile, frame, cut);
    }
  }
  CHECK(frames > 100);
}

TEST_CASE("the cut of a long run is as small as that of a short one", "[profile][frame_cut]") {
  const Profile profile = testing::HitchProfile().Make();
  const FrameCut small = CutFrame(profile, testing::HitchOf(profile), References::kLeave);
  Profile large = profile;
  const auto location = static_cast<uint32_t>(large.locations.size());
  large.strings.push_back("elsewhere");
  large.calls.push_back({.function = static_cast<uint32_t>(large.strings.size() - 1)});
  large.locations.push_back({.address = 1, .first_call = static_cast<uint32_t>(large.calls.size() - 1), .calls = 1});
  for (uint32_t i = 0; i < 1000; ++i) {
    large.stacks.push_back({.parent = i == 0 ? ProfileStack::kRoot : static_cast<uint32_t>(large.stacks.size() - 1),
                            .location = location});
    large.waits.push_back({});
    large.threads.push_back({.tid = 1000 + i});
  }
  const FrameCut cut = CutFrame(large, testing::HitchOf(large), References::kLeave);
  CHECK(cut.profile.stacks.size() == small.profile.stacks.size());
  CHECK(cut.profile.locations.size() == small.profile.locations.size());
  CHECK(cut.profile.calls.size() == small.profile.calls.size());
  CHECK(cut.profile.waits.size() == small.profile.waits.size());
  CHECK(cut.profile.strings == small.profile.strings);
  CHECK(cut.silent_threads == 1001);
}

TEST_CASE("a frame of another profile is refused", "[profile][frame_cut]") {
  const Profile profile = testing::HitchProfile().Make();
  const SlowFrame frame = testing::HitchOf(profile);
  const auto is_refused = [&](auto&& change) {
    SlowFrame wrong = frame;
    change(wrong);
    return CheckFrame(profile, wrong).code() == absl::StatusCode::kInvalidArgument;
  };
  CHECK(CheckFrame(profile, frame) == absl::OkStatus());
  CHECK(is_refused([&](SlowFrame& wrong) { wrong.zone = static_cast<uint32_t>(profile.zones.size()); }));
  CHECK(is_refused([](SlowFrame& wrong) { wrong.zone = 0; }));  // a zone
  CHECK(is_refused([](SlowFrame& wrong) { wrong.parts[0].stack = 1 << 30; }));
  CHECK(is_refused([](SlowFrame& wrong) { wrong.parts[0].wait = 1 << 30; }));
  CHECK(is_refused([](SlowFrame& wrong) { wrong.causes.at(0).wait = 1 << 30; }));
  CHECK(is_refused([](SlowFrame& wrong) { wrong.causes.at(0).thread = 1 << 30; }));
  CHECK(is_refused([](SlowFrame& wrong) { wrong.causes.at(0).thread_stack = 1 << 30; }));
  CHECK(is_refused([](SlowFrame& wrong) { wrong.causes.at(0).memory = 1 << 30; }));
  CHECK(is_refused([](SlowFrame& wrong) { wrong.counts.at(0).stack = 1 << 30; }));
  CHECK(is_refused([](SlowFrame& wrong) { wrong.faults.at(0).stack = 1 << 30; }));
  CHECK(is_refused([](SlowFrame& wrong) { wrong.faults.at(0).memory = 1 << 30; }));
}

}  // namespace
}  // namespace perfkit::profile
