// Slow frames: by hand, and the laws of any profile.
#include "perfkit/slow_frames.h"

#include <catch2/catch.hpp>
#include <map>
#include <numeric>
#include <random>

#include "perfkit/profile_builder.h"
#include "src/profile/frame_parts.h"

namespace perfkit::profile {
namespace {

constexpr uint64_t kMillisecond = 1'000'000, kStart = 1'000 * kMillisecond;

// Frames of one thread, 10 ms each: 4 ms physics, in which 1 ms solve, 2 ms off the CPU, the rest in no zone.
class Game {
 public:
  Game() {
    clock_ = builder_.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
    off_cpu_ = builder_.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
    thread_ = builder_.AddThread(1, 1, "game");
    futex_ = builder_.AddWait({.blocked_in_syscall = true,
                               .syscall = 202,
                               .detail = builder_.String("futex 0x7f12"),
                               .waker = builder_.String("w (2)")});
    preempted_ = builder_.AddWait({.preempted = true});
    solve_ = builder_.Stack(ProfileStack::kRoot, builder_.Function("Solve", "game"));
    lock_ = builder_.Stack(solve_, builder_.Function("Lock", "libc"));
  }

  // A frame; `more_ms` of each part.
  void Frame(uint64_t solve_ms = 0, uint64_t wait_ms = 0, uint64_t preempted_ms = 0) {
    const uint64_t from_ns = now_ns_;
    Zone("physics", from_ns, from_ns + (4 + solve_ms) * kMillisecond);
    Zone("solve", from_ns + kMillisecond, from_ns + (2 + solve_ms) * kMillisecond);
    Sample(from_ns + kMillisecond, "physics/solve", solve_);
    now_ns_ += (5 + solve_ms) * kMillisecond;
    Wait((2 + wait_ms) * kMillisecond, futex_);
    if (preempted_ms != 0) Wait(preempted_ms * kMillisecond, preempted_);
    now_ns_ += 3 * kMillisecond;
    builder_.AddZone({.from_ns = from_ns,
                      .to_ns = now_ns_,
                      .thread = thread_,
                      .name = builder_.String("frame " + std::to_string(number_++)),
                      .cause = builder_.String(now_ns_ - from_ns > 10 * kMillisecond ? "a slow zone" : ""),
                      .is_frame = true});
  }
  // What frames wait for from now on.
  void NameWait(const std::string& detail) {
    futex_ = builder_.AddWait({.blocked_in_syscall = true, .syscall = 202, .detail = builder_.String(detail)});
  }
  ProfileBuilder& builder() { return builder_; }
  Profile Take() { return builder_.Take(); }

 private:
  void Zone(const char* name, uint64_t from_ns, uint64_t to_ns) {
    builder_.AddZone({.from_ns = from_ns, .to_ns = to_ns, .thread = thread_, .name = builder_.String(name)});
  }
  void Sample(uint64_t at_ns, const char* label, uint32_t stack) {
    builder_.AddSample({.time_ns = at_ns,
                        .weight = kMillisecond,
                        .thread = thread_,
                        .stack = stack,
                        .label = builder_.String(label),
                        .event = static_cast<uint16_t>(clock_),
                        .quality = StackQuality::kWhole});
  }
  void Wait(uint64_t ns, uint32_t wait) {
    builder_.AddSample({.time_ns = now_ns_,
                        .weight = ns,
                        .thread = thread_,
                        .stack = lock_,
                        .wait = wait,
                        .event = static_cast<uint16_t>(off_cpu_),
                        .quality = StackQuality::kWhole});
    now_ns_ += ns;
  }

  ProfileBuilder builder_;
  uint32_t clock_ = 0, off_cpu_ = 0, thread_ = 0, futex_ = 0, preempted_ = 0, solve_ = 0, lock_ = 0;
  uint64_t now_ns_ = kStart;
  int number_ = 0;
};

void CheckSums(const SlowFrame& frame) {
  uint64_t ns = 0;
  int64_t excess_ns = frame.rest_ns;
  for (const FramePart& part : frame.parts) ns += part.ns, excess_ns += part.excess_ns();
  CHECK(ns == frame.ns);
  CHECK(excess_ns == frame.excess_ns());
  int64_t caused_ns = 0;
  for (const FrameCause& cause : frame.causes) caused_ns += cause.share_ns;
  CHECK(caused_ns == frame.excess_ns());
  CHECK(std::is_sorted(frame.parts.begin(), frame.parts.end(),
                       [](const FramePart& a, const FramePart& b) { return a.excess_ns() > b.excess_ns(); }));
}

TEST_CASE("a slow frame says in which part it took longer, and where", "[profile][slow_frames]") {
  Game game;
  for (int i = 0; i < 20; ++i) game.Frame();
  game.Frame(7);
  for (int i = 0; i < 20; ++i) game.Frame();
  game.Frame(0, 30, 1);
  game.Frame();
  const Profile profile = game.Take();
  const std::vector<SlowFrame> slow = FindSlowFrames(profile);
  REQUIRE(slow.size() == 2);
  for (const SlowFrame& frame : slow) {
    CheckSums(frame);
    CHECK(frame.usual_ns == 10 * kMillisecond);
    CHECK(frame.rest_ns == 0);
  }
  CHECK(slow[0].ns == 41 * kMillisecond);
  const FramePart& wait = slow[0].parts[0];
  CHECK((wait.kind == FramePart::Kind::kWait && wait.name == "futex" && wait.wait == 0));
  CHECK((wait.ns == 32 * kMillisecond && wait.usual_ns == 2 * kMillisecond));
  CHECK(profile.strings[profile.CallsAt(profile.stacks[wait.stack].location)[0].function] == "Lock");
  CHECK((slow[0].parts[1].kind == FramePart::Kind::kPreempted && slow[0].parts[1].excess_ns() == kMillisecond));
  const FramePart& solve = slow[1].parts[0];
  CHECK((solve.kind == FramePart::Kind::kZone && solve.name == "physics/solve"));
  CHECK((solve.ns == 8 * kMillisecond && solve.usual_ns == kMillisecond && solve.samples == 1 &&
         solve.samples_of_stack == 1));
  const std::string text = FormatSlowFrames(profile, {.frames = 1});
  CAPTURE(text);
  CHECK(text.find("# the 1 slowest of 43 frames\n") != text.npos);
  CHECK(text.find("41.00 ms, 31.00 ms more than usual: a slow zone") != text.npos);
  CHECK(text.find("waited: futex 0x7f12, woken by w (2)") != text.npos);
  CHECK(text.find("Lock < Solve\n") != text.npos);
  CHECK(text.find("was not recorded") == text.npos);
}

TEST_CASE("frames are chosen by name, and compared with their own kind", "[profile][slow_frames]") {
  Game game;
  for (int i = 0; i < 5; ++i) game.Frame();
  ProfileBuilder& builder = game.builder();
  const uint32_t audio = builder.AddThread(1, 2, "audio");
  for (uint64_t i = 0; i < 5; ++i) {
    const uint64_t from_ns = kStart + 10 * i * kMillisecond;
    builder.AddZone({.from_ns = from_ns,
                     .to_ns = from_ns + (i == 3 ? 3 : 2) * kMillisecond,
                     .thread = audio,
                     .name = builder.String("mix"),
                     .is_frame = true});
  }
  const Profile profile = game.Take();
  const std::vector<SlowFrame> slow = FindSlowFrames(profile);
  REQUIRE(slow.size() == 1);
  CHECK((slow[0].ns == 3 * kMillisecond && slow[0].usual_ns == 2 * kMillisecond));
  CHECK(FindSlowFrames(profile, {.name = "fr*"}).empty());
  CHECK(FindSlowFrames(profile, {.name = "mi?"}).size() == 1);
  CHECK(FindSlowFrames(profile, {.frames = 0}).empty());
}

TEST_CASE("frames that are not whole are not explained", "[profile][slow_frames]") {
  Game game;
  game.Frame(0, 50);
  for (int i = 0; i < 9; ++i) game.Frame();
  game.Frame(1);
  Profile profile = game.Take();
  profile.zones[2].is_whole = false;  // the first frame
  const std::vector<SlowFrame> slow = FindSlowFrames(profile);
  REQUIRE(slow.size() == 1);
  CHECK(slow[0].ns == 11 * kMillisecond);
  const std::string text = FormatSlowFrames(profile);
  CHECK(text.find("# 1 frame is left out: some of their waits, zones or samples are not in the profile\n") !=
        text.npos);
}

// Most frames of a session that keeps the slow ones are slow.
TEST_CASE("what is usual is told by the references, if there are any", "[profile][slow_frames]") {
  Game game;
  for (int i = 0; i < 9; ++i) game.Frame(5);
  for (int i = 0; i < 3; ++i) game.Frame();
  Profile profile = game.Take();
  CHECK(FindSlowFrames(profile).empty());
  std::vector<ProfileZone*> frames;
  for (ProfileZone& zone : profile.zones) {
    if (zone.is_frame) frames.push_back(&zone);
  }
  for (size_t i = 8; i < frames.size(); ++i) frames[i]->is_reference = true;
  CHECK(FormatSlowFrames(profile).find("# usual: as in 4 frames that were chosen at random\n") != std::string::npos);
  const std::vector<SlowFrame> slow = FindSlowFrames(profile, {.frames = 100});
  CHECK(slow.size() == 9);
  for (const SlowFrame& frame : slow) {
    CheckSums(frame);
    CHECK((frame.usual_ns == 10 * kMillisecond && frame.ns == 15 * kMillisecond));
    CHECK((frame.parts[0].name == "physics/solve" && frame.parts[0].usual_ns == kMillisecond));
  }
}

TEST_CASE("a frame with a reason of the program is told, however short", "[profile][slow_frames]") {
  Game game;
  for (int i = 0; i < 9; ++i) game.Frame();
  game.Frame(5);
  Profile profile = game.Take();
  profile.strings.emplace_back("level 3");
  const auto first = std::find_if(profile.zones.begin(), profile.zones.end(), [](const auto& z) { return z.is_frame; });
  first->reason = static_cast<uint32_t>(profile.strings.size() - 1);
  const auto zone = static_cast<uint32_t>(first - profile.zones.begin());
  for (const size_t frames : {0, 1, 3}) {
    const std::vector<SlowFrame> slow = FindSlowFrames(profile, {.frames = frames});
    CHECK(slow.size() == (frames == 0 ? 1 : 2));
    CHECK(slow.back().zone == zone);
  }
  const SlowFrame frame = ExplainFrame(profile, zone);
  CheckSums(frame);
  CHECK(frame.excess_ns() == 0);
  const std::string text = FormatSlowFrames(profile, {.frames = 0});
  CHECK(text.find("\n  kept: level 3\n") != text.npos);
  CHECK(text.find(FormatSlowFrame(profile, frame)) != text.npos);
}

TEST_CASE("a frame is explained as if it were the only one", "[profile][slow_frames]") {
  for (uint32_t seed = 0; seed < 6; ++seed) {
    std::mt19937 random(seed);
    Game game;
    ProfileBuilder& builder = game.builder();
    const auto faults = static_cast<uint16_t>(builder.AddEvent({.name = "page-faults"}));
    const uint32_t reason = builder.String("level 3");
    for (int i = 0; i < 20; ++i) {
      if (i % 5 == 0) game.NameWait("futex 0x7f" + std::to_string(i));
      game.Frame(random() % 3, random() % 3, random() % 2);
    }
    ProfileCounter cycles{.name = builder.String("cycles"), .thread = 0};
    ProfileCounter on_cpu{.name = builder.String("task-clock"), .unit = ProfileUnit::kNanoseconds, .thread = 0};
    for (ProfileZone& zone : builder.profile().zones) {
      if (!zone.is_frame) continue;
      zone.reason = reason;
      zone.is_reference = seed >= 3 && random() % 2 == 0;
      builder.AddSample({.time_ns = zone.from_ns + 1, .weight = 1 + random() % 9, .event = faults});
      cycles.points.push_back({zone.from_ns, 1e6 + static_cast<double>(random() % 1'000'000)});
      on_cpu.points.push_back({zone.from_ns, 1e6});
    }
    builder.profile().counters = {cycles, on_cpu};
    const Profile profile = game.Take();
    const std::vector<SlowFrame> slow = FindSlowFrames(profile);
    CHECK(slow.size() == 20);
    for (const SlowFrame& frame : slow) {
      const SlowFrame alone = ExplainFrame(profile, frame.zone);
      CHECK(FormatSlowFrame(profile, frame) == FormatSlowFrame(profile, alone));
      CHECK(frame.usual_ghz == alone.usual_ghz);
    }
  }
}

TEST_CASE("a frame has its counts beside those of its kind, and where they were", "[profile][slow_frames]") {
  Game game;
  ProfileBuilder& builder = game.builder();
  const auto event = static_cast<uint16_t>(builder.AddEvent({.name = "page-faults at cpu-clock"}));
  const uint32_t hot = builder.Stack(ProfileStack::kRoot, builder.Function("Touch", "game"));
  const uint32_t cold = builder.Stack(ProfileStack::kRoot, builder.Function("Read", "game"));
  for (int i = 0; i < 10; ++i) game.Frame(i == 7 ? 5 : 0);
  std::vector<ProfileZone> frames;
  for (const ProfileZone& zone : builder.profile().zones) {
    if (zone.is_frame) frames.push_back(zone);
  }
  ProfileCounter faults{.name = builder.String("page-faults"), .thread = 0};
  ProfileCounter other{.name = builder.String("page-faults (audio)"), .thread = 0};
  for (size_t i = 0; i < frames.size(); ++i) {
    faults.points.push_back({frames[i].from_ns, i == 7 ? 5000.0 : 10.0});
    other.points.push_back({frames[i].from_ns, 77});
    const auto sample = [&](uint32_t stack, uint64_t weight) {
      builder.AddSample({.time_ns = frames[i].from_ns + 1,
                         .weight = weight,
                         .samples = 0,
                         .thread = 0,
                         .stack = stack,
                         .event = event,
                         .quality = StackQuality::kWhole});
    };
    sample(cold, 5);
    if (i == 7) sample(hot, 4000);
  }
  SECTION("by the FrameCounter") {
    builder.profile().counters = {faults, other};
    const Profile profile = game.Take();
    const std::vector<SlowFrame> slow = FindSlowFrames(profile);
    REQUIRE((slow.size() == 1 && slow[0].counts.size() == 1));
    const FrameCount& count = slow[0].counts[0];
    CHECK((count.name == "page-faults" && count.value == 5000 && count.usual == 10));
    CHECK((count.stack == hot && count.at_stack == 4000));
    const std::string text = FormatSlowFrames(profile);
    CAPTURE(text);
    CHECK(text.find("         +4990         5000           10  page-faults\n") != text.npos);
    CHECK(text.find("  Touch (4000)\n") != text.npos);
  }
  SECTION("by samples alone") {
    const std::vector<SlowFrame> slow = FindSlowFrames(game.Take());
    REQUIRE((slow.size() == 1 && slow[0].counts.size() == 1));
    const FrameCount& count = slow[0].counts[0];
    CHECK((count.value == 4005 && count.usual == 5 && count.stack == hot));
  }
}

// Two waits for the like have addresses of their own.
TEST_CASE("what is usual is told by the kind of a wait", "[profile][slow_frames]") {
  Game game;
  for (int i = 0; i < 10; ++i) {
    game.NameWait("futex 0x" + std::to_string(i));
    game.Frame();
  }
  game.NameWait("futex 0xff");
  game.Frame(5);
  const std::vector<SlowFrame> slow = FindSlowFrames(game.Take());
  REQUIRE(slow.size() == 1);
  CHECK((slow[0].parts[0].name == "physics/solve" &&
         slow[0].parts[0].excess_ns() == 5 * static_cast<int64_t>(kMillisecond)));
  CHECK(slow[0].rest_ns == 0);
}

TEST_CASE("a profile that is damaged gives the error, and one without frames none", "[profile][slow_frames]") {
  Game game;
  game.Frame();
  Profile profile = game.Take();
  CHECK(FormatSlowFrames(profile).find("# the 0 slowest of 1 frames\n") == 0);
  profile.accounting.zones_forgotten = 9;
  CHECK(FormatSlowFrames(profile).find("# the 0 slowest of 1 kept frames\n") == 0);
  profile.accounting.zones_forgotten = 0;
  CHECK(FormatSlowFrames(profile).find("# no frame took longer than usual\n") != std::string::npos);
  CHECK(FormatSlowFrames(profile, {.name = "au*"}).find("like 'au*' took longer") != std::string::npos);
  CHECK(FormatSlowFrames(profile, {.frames = 0}).find("SlowFrameOptions::frames is 0") != std::string::npos);
  CHECK(FormatSlowFrames({}).find("Remedy: set SessionOptions::frames") != std::string::npos);
  profile.zones[0].thread = 77;
  CHECK(FormatSlowFrames(profile).find("zones") != std::string::npos);
  CHECK(FindSlowFrames({}).empty());
}

TEST_CASE("a wait goes on after the zone in which it began", "[profile][slow_frames]") {
  ProfileBuilder builder;
  builder.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
  builder.AddThread(1, 1, "game");
  builder.AddZone({.from_ns = 100, .to_ns = 200, .thread = 0, .name = builder.String("outer")});
  builder.AddZone({.from_ns = 120, .to_ns = 160, .thread = 0, .name = builder.String("inner")});
  builder.AddSample({.time_ns = 150, .weight = 110, .thread = 0, .event = 0});
  const Profile profile = builder.Take();
  PartNames names;
  const ThreadParts parts(profile, 0, names);
  std::string pieces;
  parts.Split(90, 300, [&](uint32_t part, uint64_t ns, uint32_t) {
    const bool waits = names[part].kind == FramePart::Kind::kWait;
    pieces += (waits ? "wait" : names[part].text) + " " + std::to_string(ns) + ", ";
  });
  CHECK(pieces == " 10, outer 20, outer/inner 30, wait 10, wait 40, wait 60,  40, ");
}

// The lengths of the pieces of a time, by part and sample.
using PartSums = std::map<std::pair<uint32_t, uint32_t>, uint64_t>;
PartSums SumsOf(const ThreadParts& parts, uint64_t from_ns, uint64_t to_ns) {
  PartSums sums;
  parts.Split(from_ns, to_ns, [&](uint32_t part, uint64_t ns, uint32_t sample) { sums[{part, sample}] += ns; });
  return sums;
}

// Zones and waits of any times: nested or not, overlapping, empty.
TEST_CASE("the parts of any time are as long as the time, and add up from its halves", "[profile][slow_frames]") {
  std::mt19937 random(GENERATE(range(1, 50)));
  const auto below = [&](uint64_t limit) { return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random); };
  Game game;
  ProfileBuilder& builder = game.builder();
  for (uint64_t i = below(30); i > 0; --i) {
    const uint64_t from_ns = below(1'000);
    builder.AddZone({.from_ns = from_ns,
                     .to_ns = from_ns + below(300),
                     .thread = 0,
                     .name = builder.String(std::string(1, static_cast<char>('a' + below(4)))),
                     .is_frame = below(5) == 0});
  }
  for (uint64_t i = below(30); i > 0; --i) {
    builder.AddSample({.time_ns = 1 + below(1'000),
                       .weight = below(50) == 0 ? UINT64_MAX / 64 : below(200),
                       .thread = 0,
                       .wait = static_cast<uint32_t>(below(2)),
                       .event = 1});
  }
  const Profile profile = builder.Take();
  REQUIRE(profile.Check() == absl::OkStatus());
  PartNames names;
  const ThreadParts parts(profile, 0, names);
  for (int i = 0; i < 50; ++i) {
    const uint64_t from_ns = below(1'200), to_ns = from_ns + below(400);
    uint64_t sum = 0;
    parts.Split(from_ns, to_ns, [&](uint32_t part, uint64_t ns, uint32_t sample) {
      CHECK(ns > 0);
      CHECK((sample == ThreadParts::kNoSample) == (names[part].kind == FramePart::Kind::kZone));
      sum += ns;
    });
    CHECK(sum == to_ns - from_ns);
    const uint64_t middle_ns = from_ns + below(to_ns - from_ns + 1);
    PartSums halves = SumsOf(parts, from_ns, middle_ns);
    for (const auto& [piece, ns] : SumsOf(parts, middle_ns, to_ns)) halves[piece] += ns;
    CHECK(SumsOf(parts, from_ns, to_ns) == halves);
  }
  for (const SlowFrame& frame : FindSlowFrames(profile, {.frames = 100})) CheckSums(frame);
}

}  // namespace
}  // namespace perfkit::profile
