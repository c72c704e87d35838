// Causes of slow frames: profiles by hand, for time on the CPU.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "src/profile/frame_counts.h"
#include "src/profile/stolen_time.h"
#include "tests/profile/hitching.h"

namespace perfkit::profile {
namespace {

using Kind = FrameCause::Kind;
using Confidence = FrameCause::Confidence;

TEST_CASE("more work in a zone, and preemption", "[profile][causes]") {
  Hitching game;
  game.Run(20);
  game.Wait(7, {.preempted = true}, game.render());
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 2);
  CHECK((causes[0].kind == Kind::kMoreWork && causes[0].confidence == Confidence::kKnown));
  CHECK((causes[0].what == "work" && causes[0].share_ns == 16 * int64_t{kMs} && causes[0].stack == game.render()));
  CHECK((causes[1].kind == Kind::kPreempted && causes[1].confidence == Confidence::kKnown));
  CHECK(game.text().find("+16.00 ms  known    more work in work, in Render()\n") != std::string::npos);
  CHECK(game.text().find("+7.000 ms  known    preempted in Render(): others ran, or a CPU quota was used up "
                         "[to know more: SessionOptions::preempters, which needs CAP_PERFMON and tracefs]\n") !=
        std::string::npos);
}

// Waits in one frame, by who preempted it ("": not known), for how long, and how many others ran meanwhile.
struct Preempted {
  const char* name = "";
  uint64_t ms = 0;
  uint32_t others = 0;
};

std::string TextOf(std::initializer_list<Preempted> waits) {
  Hitching game;
  game.builder().profile().accounting.switches_read = 100;
  for (const Preempted& wait : waits) {
    const uint32_t command = game.builder().String(wait.name);
    const uint32_t tid = command == 0 ? 0 : std::string_view(wait.name).starts_with("swapper") ? 0 : 100 + command;
    game.Run(1);
    game.Wait(wait.ms, {.preempted = true, .preempter = {.tid = tid, .command = command, .others = wait.others}},
              game.render());
  }
  for (const FrameCause& cause : game.Causes()) {
    if (cause.kind != Kind::kPreempted) continue;
    CHECK((cause.confidence == Confidence::kKnown && cause.remedy.empty()));
    std::string text = cause.what;
    for (size_t at = text.find(" (tid "); at != std::string::npos; at = text.find(" (tid ")) {
      text.erase(at, text.find(')', at) + 1 - at);
    }
    return text;
  }
  return "no such cause";
}

TEST_CASE("preemption names who ran for the largest share", "[profile][causes]") {
  CHECK(TextOf({{"cc1plus", 8}}) == "`cc1plus`");
  CHECK(TextOf({{"cc1plus", 8, 2}}) == "`cc1plus` and 2 other threads");
  CHECK(TextOf({{"make", 5}, {"cc1plus", 4}, {"cc1plus", 4}}) == "`cc1plus` and 1 other thread");
  CHECK(TextOf({{"make", 5, 3}, {"cc1plus", 8}}) == "`cc1plus` and at least 3 other threads");
  CHECK(TextOf({{"swapper/0", 8}, {"make", 3}}) ==
        "no thread: its CPU was idle, as when a CPU quota (cgroup) is used up; less of the time ran 1 thread");
  CHECK(TextOf({{"cc1plus", 8}, {"", 3}}) == "`cc1plus`, and perhaps others");
  CHECK(
      TextOf({{"swapper/0", 8}, {"", 3}}) ==
      "no thread: its CPU was idle, as when a CPU quota (cgroup) is used up; others may have run for less of the time");
  CHECK(TextOf({{"cc1plus", 3}, {"", 8}}).empty());
  CHECK(TextOf({{"", 8}}).empty());
}

TEST_CASE("work that no sample shows is not known, and may be page faults", "[profile][causes]") {
  constexpr bool kUserOnly = true;
  const bool many = GENERATE(false, true);
  Hitching game(kUserOnly);
  game.Run(6);
  game.Run(5, ProfileStack::kRoot);  // In the kernel, less than half of the zone.
  const std::vector<FrameCause> causes = game.Causes(many ? 1000 : 3);
  REQUIRE(causes.size() == (many ? 2 : 1));
  if (many) CHECK((causes[0].kind == Kind::kPageFaults && causes[0].share_ns == 5 * int64_t{kMs}));
  CHECK((causes.back().kind == Kind::kMoreWork && causes.back().share_ns == (many ? 2 : 7) * int64_t{kMs}));
  for (const FrameCause& cause : causes) {
    CHECK(cause.confidence == (cause.kind == Kind::kMoreWork && many ? Confidence::kKnown : Confidence::kLikely));
  }
}

TEST_CASE("more work is told by the function that ran longer than usual", "[profile][causes]") {
  Hitching game;
  const uint32_t parse = game.builder().Stack(ProfileStack::kRoot, game.builder().Function("Parse()", "/bin/game"));
  game.Run(4);
  game.Run(3, parse);
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 1);
  CHECK((causes[0].kind == Kind::kMoreWork && causes[0].stack == parse));
}

TEST_CASE("page faults that are usual are none to blame, although they are not counted", "[profile][causes]") {
  Hitching game;
  const uint32_t fault = game.InKernel("clear_page_erms", game.InKernel("asm_exc_page_fault", game.render()));
  for (int i = 0; i < 90; ++i) {
    game.Run(5, fault);
    game.Usual();
  }
  game.Run(5, fault);
  game.Run(12);
  const std::vector<FrameCause> causes = game.Causes();
  // Ten frames have no faults: their mean is 4.5 ms.
  REQUIRE(!causes.empty());
  CHECK((causes[0].kind == Kind::kMoreWork && causes[0].share_ns * 2 == 15 * int64_t{kMs}));
}

TEST_CASE("page faults are known by samples in their code, as far as these go", "[profile][causes]") {
  Hitching game;
  const uint32_t fault = game.InKernel("clear_page_erms", game.InKernel("asm_exc_page_fault", game.render()));
  game.Run(8);
  game.Run(12, fault);
  const std::vector<FrameCause> causes = game.Causes(10'000);
  REQUIRE(causes.size() == 2);
  CHECK((causes[0].kind == Kind::kPageFaults && causes[0].confidence == Confidence::kKnown));
  CHECK((causes[0].share_ns / int64_t{kMs} == 12 && causes[0].stack == fault && causes[0].what == "work"));
  CHECK((causes[1].kind == Kind::kMoreWork && causes[1].share_ns / int64_t{kMs} == 4));
}

TEST_CASE("page faults are likely by their count, where the kernel may not be seen", "[profile][causes]") {
  Hitching game(true);
  game.Run(4);
  game.Run(16, ProfileStack::kRoot);
  SECTION("as many as take so long") {
    const std::vector<FrameCause> causes = game.Causes(10'000);
    REQUIRE(causes.size() == 1);
    CHECK((causes[0].kind == Kind::kPageFaults && causes[0].confidence == Confidence::kLikely));
    CHECK(causes[0].remedy.find("CAP_PERFMON") != std::string::npos);
  }
  SECTION("too few: the kernel did something else") {
    const std::vector<FrameCause> causes = game.Causes(103);
    REQUIRE(causes.size() == 2);
    CHECK((causes[0].kind == Kind::kUnknown && causes[0].share_ns == 14 * int64_t{kMs}));
    CHECK((causes[1].kind == Kind::kPageFaults && causes[1].share_ns == 2 * int64_t{kMs}));
    CHECK(
        game.text().find("not known: time in the kernel in work, or taken by the machine [to know more: CAP_PERFMON") !=
        std::string::npos);
  }
  SECTION("as usual") {
    const std::vector<FrameCause> causes = game.Causes();
    REQUIRE(causes.size() == 1);
    CHECK(causes[0].kind == Kind::kUnknown);
  }
}

TEST_CASE("page faults are counted by their two kinds, too, unless all are", "[profile][causes]") {
  for (const bool all_are_counted : {false, true}) {
    SlowFrame frame;
    frame.counts = {{.name = "major-faults", .value = 40, .usual = 0, .stack = 1},
                    {.name = "minor-faults", .value = 100, .usual = 10, .stack = 2}};
    if (all_are_counted) frame.counts.push_back({.name = "page-faults", .value = 150, .usual = 15, .stack = 3});
    const FrameFaults faults = FaultsOf(frame);
    CHECK(faults.extra == (all_are_counted ? 135 : 130));
    CHECK(faults.stack == (all_are_counted ? 3 : 2));
  }
  SlowFrame frame;
  CHECK(FaultsOf(frame).extra == 0);
  frame.counts = {{.name = "major-faults", .value = 8}, {.name = "minor-faults", .value = 7}};
  CHECK(FaultsOf(frame).extra == 0);
}

TEST_CASE("what took less than usual is a cause of its own, and negative", "[profile][causes]") {
  Hitching game;
  game.Run(1);
  game.Wait(9, game.Call(SYS_nanosleep, "sleep", 8), game.render());
  const std::vector<FrameCause> causes = game.Causes();
  REQUIRE(causes.size() == 2);
  CHECK((causes[0].kind == Kind::kSleep && causes[0].share_ns == 9 * int64_t{kMs}));
  CHECK((causes[1].kind == Kind::kLess && causes[1].share_ns == -3 * int64_t{kMs}));
}

TEST_CASE("each kind and each confidence has a name", "[profile][causes]") {
  for (int kind = 0; kind <= static_cast<int>(Kind::kLess); ++kind) {
    CHECK(!FrameCauseKindName(static_cast<Kind>(kind)).empty());
  }
  CHECK(FrameCauseKindName(Kind::kLess) == "less than usual");
  CHECK(FrameCauseConfidenceName(Confidence::kKnown) == "known");
}

// Frames of 10 ms in a zone on the CPU, sampled each ms. Samples of the first `merged` frames are merged. `slow` takes
// 60 ms.
Profile MergedFrames(uint64_t merged, uint64_t slow, bool has_off_cpu, bool is_asleep) {
  ProfileBuilder builder;
  builder.AddEvent({.name = "cpu-clock", .unit = ProfileUnit::kNanoseconds});
  if (has_off_cpu) builder.AddEvent({.name = std::string(kOffCpuEvent), .unit = ProfileUnit::kNanoseconds});
  const uint32_t thread = builder.AddThread(1, 1, "main");
  const uint32_t stack = builder.Stack(ProfileStack::kRoot, builder.Function("Solve()", "/bin/game"));
  uint64_t at_ns = kBegin;
  for (uint64_t i = 0; i < 20; ++i) {
    const uint64_t ms = i == slow ? 60 : 10, sampled_ms = i == slow && is_asleep ? 10 : ms;
    const std::string name = "frame " + std::to_string(i);
    for (const std::string& zone : {name, std::string("work")}) {
      builder.AddZone({.from_ns = at_ns,
                       .to_ns = at_ns + ms * kMs,
                       .thread = thread,
                       .name = builder.String(zone),
                       .is_frame = zone == name});
    }
    for (uint64_t k = 0; k < sampled_ms; ++k) {
      builder.AddSample({.time_ns = i < merged ? 0 : at_ns + k * kMs + 1,
                         .weight = kMs,
                         .thread = thread,
                         .stack = stack,
                         .label = builder.String("work"),
                         .quality = StackQuality::kWhole});
    }
    at_ns += ms * kMs;
  }
  return builder.Take();
}

TEST_CASE("a frame whose samples were merged is not known, and more memory would tell", "[profile][causes]") {
  const bool has_off_cpu = GENERATE(false, true);
  const Profile profile = MergedFrames(10, 5, has_off_cpu, false);
  const std::vector<SlowFrame> slow = FindSlowFrames(profile, {.frames = 1});
  REQUIRE(slow.size() == 1);
  CheckShares(slow[0]);
  REQUIRE(slow[0].causes.size() == 1);
  const FrameCause& cause = slow[0].causes[0];
  CHECK((cause.kind == Kind::kUnknown && cause.share_ns == 50 * int64_t{kMs}));
  CHECK(cause.what == "time in work whose samples were merged with those of other times");
  CHECK(cause.remedy == "a larger SessionOptions::memory_bytes");
}

TEST_CASE("a frame from after the samples that were merged is told as any other", "[profile][causes]") {
  for (const bool is_asleep : {false, true}) {
    const Profile profile = MergedFrames(10, 15, false, is_asleep);
    const std::vector<SlowFrame> slow = FindSlowFrames(profile, {.frames = 1});
    REQUIRE((slow.size() == 1 && !slow[0].causes.empty()));
    const FrameCause& cause = slow[0].causes[0];
    CHECK(cause.kind == (is_asleep ? Kind::kUnknown : Kind::kMoreWork));
    CHECK(cause.remedy == (is_asleep ? "SessionClock::kWall" : ""));
  }
}

TEST_CASE("what the machine took explains time without samples", "[profile][causes]") {
  const bool user_only = GENERATE(false, true);
  for (const double stolen_ms : {0., 9., 30.}) {
    INFO(user_only << " " << stolen_ms);
    Hitching game(user_only);
    const uint64_t begin_ns = game.now_ns();
    game.Run(4);
    game.Run(16, ProfileStack::kRoot);
    const ProfileCounter counter{.name = game.builder().String(kStolenCounter),
                                 .unit = ProfileUnit::kNanoseconds,
                                 .thread = game.main(),
                                 .points = {{begin_ns + kMs, 0}, {begin_ns + 19 * kMs, stolen_ms * 1e6}}};
    const std::vector<FrameCause> causes = game.Causes(3, {counter});
    const auto taken_ns = static_cast<int64_t>(std::min(stolen_ms, 16.) * 1e6);
    REQUIRE(causes.size() == (stolen_ms == 9. ? 2 : 1));
    for (const FrameCause& cause : causes) {
      const bool is_stolen = cause.kind == Kind::kStolen;
      CHECK((is_stolen || cause.kind == Kind::kUnknown));
      CHECK(cause.share_ns == (is_stolen ? taken_ns : 16 * int64_t{kMs} - taken_ns));
      CHECK(cause.confidence == (is_stolen ? Confidence::kLikely : Confidence::kUnknown));
    }
    const bool is_told =
        game.text().find("taken by the machine, a hypervisor or interrupts, in work") != std::string::npos;
    CHECK(is_told == (stolen_ms != 0));
  }
}

TEST_CASE("a CPU quota explains a preempted wait as far as it was used up", "[profile][causes]") {
  struct Case {
    const char* preempter = "";
    uint32_t others = 0;
    uint64_t throttled_ms = 0;
    Confidence confidence = Confidence::kLikely;
  };
  for (const Case& one : {Case{"", 0, 0}, Case{"", 0, 60}, Case{"", 0, 80}, Case{"", 0, 150}, Case{"cc1plus", 1, 60},
                          Case{"swapper/0", 0, 60, Confidence::kKnown}, Case{"swapper/0", 1, 60}}) {
    INFO(one.preempter << " " << one.others << " " << one.throttled_ms);
    Hitching game;
    const uint32_t command = game.builder().String(one.preempter);
    const bool is_idle = std::string_view(one.preempter).starts_with("swapper");
    game.Run(4);
    game.Wait(80,
              {.preempted = true,
               .preempter = {.tid = is_idle || command == 0 ? 0 : 123u, .command = command, .others = one.others},
               .throttled_ns = one.throttled_ms * kMs},
              game.render());
    const std::vector<FrameCause> causes = game.Causes();
    const auto throttled_ns = static_cast<int64_t>(std::min<uint64_t>(one.throttled_ms, 80) * kMs);
    REQUIRE(causes.size() == (one.throttled_ms == 60 ? 2 : 1));
    for (const FrameCause& cause : causes) {
      const bool is_quota = cause.kind == Kind::kThrottled;
      CHECK((is_quota || cause.kind == Kind::kPreempted));
      CHECK(cause.share_ns == (is_quota ? throttled_ns : 80 * int64_t{kMs} - throttled_ns));
      CHECK(cause.confidence == (is_quota ? one.confidence : Confidence::kKnown));
    }
    const bool is_told =
        game.text().find("could have run in Render(), but a CPU quota (cgroup) was used up") != std::string::npos;
    CHECK(is_told == (one.throttled_ms != 0));
  }
}

TEST_CASE("a filter by time leaves the reason why a frame has no samples", "[profile][causes]") {
  for (const uint64_t merged : {10, 0}) {
    Profile profile = MergedFrames(merged, 5, false, true);
    profile.accounting.times_forgotten = merged * 10;
    const Profile filtered = profile.Filtered({.from_ns = kBegin, .to_ns = kBegin + 1000 * kMs});
    const std::vector<SlowFrame> slow = FindSlowFrames(filtered, {.frames = 1});
    REQUIRE((slow.size() == 1 && !slow[0].causes.empty()));
    CHECK(slow[0].causes[0].kind == Kind::kUnknown);
    CHECK(slow[0].causes[0].remedy == (merged != 0 ? "a larger SessionOptions::memory_bytes" : "SessionClock::kWall"));
  }
}

TEST_CASE("a slow frame tells where the other threads ran meanwhile", "[profile][causes]") {
  Hitching game;
  const uint32_t load = game.In("Load()", "/bin/game", ProfileStack::kRoot);
  const uint32_t seldom = game.In("Seldom()", "/bin/game", ProfileStack::kRoot);
  for (uint64_t i = 0; i < 8; ++i) game.Sample(game.worker(), game.now_ns() + i * kMs, i < 5 ? load : seldom);
  for (uint64_t i = 0; i < 8; ++i) game.Sample(game.session_thread(), game.now_ns() + i * kMs, seldom);
  game.Run(20);
  game.Causes();
  const std::vector<FrameThread>& others = game.frame().others;
  REQUIRE(others.size() == 1);
  CHECK((others[0].thread == game.worker() && others[0].ns == 8 * kMs));
  CHECK((others[0].stack == load && others[0].stack_ns == 5 * kMs && others[0].quality == StackQuality::kWhole));
  CHECK(game.text().find("8.000 ms               worker (2) ran meanwhile\n") != std::string::npos);
  CHECK(game.text().find("   Load() (5.000 ms)\n") != std::string::npos);
}

TEST_CASE("a filter by zone that removes the outer zones changes no cause", "[profile][causes]") {
  Profile profile = MergedFrames(0, 5, true, false);
  const auto add = [&](const char* text) {
    profile.strings.emplace_back(text);
    return static_cast<uint32_t>(profile.strings.size() - 1);
  };
  const uint32_t loop = add("loop"), path = add("loop/work");
  profile.zones.insert(profile.zones.begin(), {.from_ns = kBegin - 1, .to_ns = kBegin + 1000 * kMs, .name = loop});
  for (ProfileSample& sample : profile.samples) sample.label = path;
  const Profile filtered = profile.Filtered({.zone = "frame *"});
  CHECK(filtered.zones.size() + 1 == profile.zones.size());
  const std::vector<SlowFrame> all = FindSlowFrames(profile, {.frames = 1});
  const std::vector<SlowFrame> part = FindSlowFrames(filtered, {.frames = 1});
  REQUIRE((all.size() == 1 && part.size() == 1));
  REQUIRE((all[0].causes.size() == 1 && part[0].causes.size() == 1));
  CHECK((all[0].causes[0].what == "loop/work" && part[0].causes[0].what == "work"));
  for (const SlowFrame& frame : {all[0], part[0]}) {
    const FrameCause& cause = frame.causes[0];
    CHECK((cause.kind == Kind::kMoreWork && cause.confidence == Confidence::kKnown));
    CHECK((cause.share_ns == 50 * int64_t{kMs} && cause.stack != ProfileStack::kRoot));
    REQUIRE(!frame.parts.empty());
    CHECK((frame.parts[0].samples == 60 && frame.parts[0].samples_of_stack == 60));
  }
}

}  // namespace
}  // namespace perfkit::profile
