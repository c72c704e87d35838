// The page faults of a slow frame, by the memory that was touched.
#include "src/profile/faulted_memory.h"

#include <catch2/catch.hpp>
#include <string>

#include "tests/profile/hitching.h"

namespace perfkit::profile {
namespace {

// Adds samples of page faults to the frame at hand.
class Faulting : public Hitching {
 public:
  uint16_t Event(const char* name) { return builder().AddEvent({.name = name}); }
  uint32_t Memory(uint64_t from, uint64_t to, std::string_view name) {
    return builder().AddMemory({from, to, builder().String(name)});
  }
  void Fault(uint16_t event, uint32_t memory, uint64_t faults, std::string_view zone = "work", uint32_t stack = 0) {
    FaultOf(main(), event, memory, faults, zone, stack);
  }
  void FaultOf(uint32_t thread, uint16_t event, uint32_t memory, uint64_t faults, std::string_view zone = "work",
               uint32_t stack = 0) {
    builder().AddSample({.time_ns = now_ns() - 1,
                         .weight = faults,
                         .thread = thread,
                         .stack = stack == 0 ? render() : stack,
                         .label = builder().String(zone),
                         .event = event,
                         .quality = StackQuality::kWhole,
                         .memory = memory});
  }
};

TEST_CASE("page faults are told by the memory, the zone and the stack", "[slow_frames][faults]") {
  Faulting game;
  const uint16_t minor = game.Event("minor-faults"), major = game.Event("major-faults");
  const uint32_t heap = game.Memory(0x1000, 0x9000, "[heap]"), file = game.Memory(0x10000, 0x20000, "/data/level.bin");
  const uint32_t blocks = game.Memory(0x7f0000000000, 0x7f0000000000 + (6 << 20), "");
  const uint32_t load = game.In("Load()", "/bin/game", game.render());
  game.Fault(minor, heap, 700, "work");  // of the frame before
  game.Run(30, game.InKernel("handle_mm_fault", load));
  game.Fault(minor, blocks, 900, "work", load);
  game.Fault(minor, blocks, 100, "work");
  game.Fault(minor, heap, 64, "work");
  game.Fault(minor, blocks, 32, "other");
  game.Fault(major, file, 7, "work", load);
  game.Fault(minor, file, 16, "work");
  game.Fault(minor, ProfileSample::kNoMemory, 5, "");
  game.FaultOf(game.worker(), minor, heap, 5000);
  const std::vector<FrameCause> causes = game.Causes(1100);
  const std::vector<FaultedMemory>& faults = game.frame().faults;
  REQUIRE(faults.size() == 5);
  CHECK((faults[0].faults == 1000 && faults[0].memory == blocks && faults[0].zone == "work" && faults[0].major == 0));
  CHECK((faults[0].stack == load && faults[0].at_stack == 900 && faults[0].quality == StackQuality::kWhole));
  CHECK((faults[1].faults == 64 && faults[1].memory == heap && faults[1].stack == game.render()));
  CHECK((faults[2].faults == 32 && faults[2].memory == blocks && faults[2].zone == "other"));
  CHECK((faults[3].faults == 23 && faults[3].memory == file && faults[3].major == 7));
  CHECK((faults[4].faults == 5 && faults[4].memory == ProfileSample::kNoMemory && faults[4].zone.empty()));
  REQUIRE(causes[0].kind == FrameCause::Kind::kPageFaults);
  CHECK(causes[0].memory == blocks);
  CHECK_THAT(game.text(), Catch::Contains("most of them of anonymous memory of 6 MiB at 0x7f0000000000\n"));
  CHECK_THAT(game.text(),
             Catch::Contains(" 1000               page faults in work: anonymous memory of 6 MiB at 0x7f"));
  CHECK_THAT(game.text(), Catch::Contains("Load() < Render() (900)"));
}

TEST_CASE("a mapping that grows is one, and others of its name are not", "[slow_frames][faults]") {
  Faulting game;
  const uint16_t faults = game.Event("page-faults"), major = game.Event("major-faults");
  const uint32_t first = game.Memory(0x5000, 0x6000, ""), grown = game.Memory(0x3000, 0x6000, "");
  const uint32_t beside = game.Memory(0x6000, 0x8000, ""), named = game.Memory(0x3000, 0x6000, "[anon:textures]");
  game.Run(30);
  game.Fault(faults, first, 1);
  game.Fault(faults, grown, 3);
  game.Fault(faults, beside, 2);
  game.Fault(faults, named, 1);
  game.Fault(major, named, 1);  // among the page-faults
  game.Causes();
  const std::vector<FaultedMemory>& found = game.frame().faults;
  REQUIRE(found.size() == 3);
  CHECK((found[0].memory == grown && found[0].faults == 4));
  CHECK((found[1].memory == beside && found[1].faults == 2));
  CHECK((found[2].memory == named && found[2].faults == 1 && found[2].major == 1));
  // No more faults than usual: only those that waited for a disk are told.
  CHECK(ToldFaults(game.frame()).size() == 1);
  CHECK_THAT(game.text(), Catch::Contains("page faults in work, 1 of them major: [anon:textures] of 12 KiB at 0x3000"));
  CHECK_THAT(game.text(), !Catch::Contains("anonymous memory"));
}

TEST_CASE("major faults that were not sampled are unknown, not none", "[slow_frames][faults]") {
  Faulting game;
  const uint16_t faults = game.Event("page-faults");
  game.Run(30);
  game.Fault(faults, game.Memory(0x5000, 0x6000, ""), 3);
  game.Causes();
  REQUIRE(game.frame().faults.size() == 1);
  CHECK_FALSE(game.frame().faults[0].major.has_value());
}

// As after Profile::Merge of one that sampled all faults and one that sampled them by kind.
TEST_CASE("faults by kind are told although another profile sampled all of them", "[slow_frames][faults]") {
  for (const bool by_kind : {true, false}) {
    CAPTURE(by_kind);
    Faulting game;
    const uint16_t all = game.Event("page-faults"), minor = game.Event("minor-faults"),
                   major = game.Event("major-faults");
    const uint32_t heap = game.Memory(0x1000, 0x9000, "[heap]");
    const uint32_t file = game.Memory(0x10000, 0x20000, "/data/level.bin");
    game.Fault(by_kind ? minor : all, heap, 20);  // of the frame before
    game.Run(30);
    const uint32_t load = game.In("Load()", "/bin/game", game.render());
    game.Fault(by_kind ? minor : all, heap, 1600, "work", load);
    game.Fault(major, heap, 3);
    game.Fault(major, file, 7, "work", load);
    (void)game.Causes(1700);
    REQUIRE(game.frame().faults.size() == 2);
    CHECK((game.frame().faults[1].faults == 7 && game.frame().faults[1].major == 7));
    CHECK((game.frame().faults[1].stack == load && game.frame().faults[1].at_stack == 7));
    CHECK(game.frame().faults[0].faults == (by_kind ? 1603 : 1600));
    CHECK(game.frame().faults[0].major == 3);
    CHECK((game.frame().faults[0].stack == load && game.frame().faults[0].at_stack == 1600));
  }
}

TEST_CASE("of a process without samples of major faults, beside another one, they are unknown",
          "[slow_frames][faults]") {
  ProfileBuilder builder;
  const uint16_t minor = builder.AddEvent({.name = "minor-faults"}), major = builder.AddEvent({.name = "major-faults"});
  std::vector<ProfileZone> frames;
  for (const uint32_t pid : {10u, 20u}) {
    const uint32_t thread = builder.AddThread(pid, pid, "main");
    frames.push_back({.from_ns = 100, .to_ns = 200, .thread = thread, .is_frame = true});
    builder.AddSample({.time_ns = 150, .weight = 5, .thread = thread, .event = minor});
    if (pid == 20) builder.AddSample({.time_ns = 160, .weight = 1, .thread = thread, .event = major});
  }
  const Profile profile = builder.Take();
  CHECK(FaultsByMemory(profile, frames[0])[0].faults == 5);
  CHECK_FALSE(FaultsByMemory(profile, frames[0])[0].major);
  CHECK(FaultsByMemory(profile, frames[1])[0].faults == 6);
  CHECK(FaultsByMemory(profile, frames[1])[0].major == 1);
}

TEST_CASE("followers say nothing about memory", "[slow_frames][faults]") {
  Faulting game;
  const uint16_t follower = game.Event("page-faults at cpu-clock");
  game.Run(30);
  game.Fault(follower, ProfileSample::kNoMemory, 900);
  game.Causes(900);
  CHECK(game.frame().faults.empty());
}

}  // namespace
}  // namespace perfkit::profile
