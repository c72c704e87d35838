// The life of a FrameCounter: secondary frames, fork, the order of ends, and the report of it all.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "perfkit/frame_counter.h"
#include "tests/count/frame/zones.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

TEST_CASE("frames: a secondary frame belongs to the thread that marks it first") {
  FrameCounter frames({.events = kEvents});
  if (!frames.reason(kFaults).empty()) SKIP_TEST(std::string(frames.reason(kFaults)));
  const FrameId audio = frames.DefineFrame("audio");
  const FrameId simulation = frames.DefineFrame("simulation");
  frames.Mark();
  uint64_t others = 0;
  std::thread([&] {
    testing::FreshPages pages(100);
    const testing::OtherFaults of_thread;
    frames.Mark(audio);
    for (size_t i = 0; i < 10; ++i) {
      PERFKIT_ZONE(frames, "mix");
      pages.Touch(i * 10, i);
      frames.Mark(audio);
    }
    others = of_thread.Beside(45);
  }).join();
  CHECK(frames.last(audio).number == 9);
  CHECK(testing::AreFaultsOf(frames.last(audio).values[kFaults], 9, others));
  CHECK(frames.history(audio).size() == 10);
  const std::vector<ZoneStats> mix_zones = frames.zones();
  const ZoneStats* const mix = Find(mix_zones, "mix", "workers");
  REQUIRE(mix != nullptr);
  CHECK(testing::AreFaultsOf(mix->quantiles[kFaults].max, 9, others));
  CHECK(mix->total[kFaults].value >= 45);
  // The main thread may mark one as well, beside its own frames.
  testing::FreshPages pages(10);
  const testing::OtherFaults of_main;
  frames.Mark(simulation);
  pages.Touch(0, 4);
  frames.Mark();
  pages.Touch(4, 4);
  frames.Mark(simulation);
  CHECK(testing::AreFaultsOf(frames.last(simulation).values[kFaults], 8, of_main.Beside(8)));
  CHECK(frames.last().values[kFaults] >= 4);
  frames.Mark(FrameId{7});
  CHECK(frames.last(FrameId{7}).missing == ~0u);
  CheckLaw(frames.zones(), frames.size());
}

TEST_CASE("frames: reports may be asked for while threads mark their first frames") {
  FrameCounter frames({.events = kEvents});
  const FrameId audio = frames.DefineFrame("audio");
  frames.Mark();
  std::atomic<bool> done{false};
  std::thread audios([&] {
    for (int i = 0; i < 50; ++i) {
      std::thread([&] {
        for (int j = 0; j < 3; ++j) frames.Mark(audio);
      }).join();
    }
    done = true;
  });
  while (!done) CHECK(!frames.zones().empty());
  audios.join();
  CHECK(frames.history(audio).size() == 50 * 2);
}

TEST_CASE("frames: the child of a fork counts nothing, and the parent goes on") {
  FrameCounter frames({.events = kEvents, .hitch_budget = std::chrono::seconds(10)});
  if (!frames.reason(kFaults).empty()) SKIP_TEST(std::string(frames.reason(kFaults)));
  frames.Mark();
  frames.Mark();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    { PERFKIT_ZONE(frames, "z"); }
    frames.Mark();
    frames.SetEnabled(true);
    const bool nothing = !frames.enabled() && frames.last().missing == ~0u && frames.history().size() == 0;
    const bool says = absl::StrContains(frames.FormatZones(), "belong to the parent process");
    _exit(nothing && says ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  // A frame may fault on one page more, which the fork made copy-on-write: now and then the history comes to another.
  testing::FreshPages pages(60);
  for (size_t round = 0; round < 10; ++round) {
    const testing::OtherFaults others;
    frames.Mark();
    pages.Touch(6 * round, 6);
    frames.Mark();
    CHECK(testing::AreFaultsOf(frames.last().values[kFaults], 6, others.Beside(6)));
  }
}

TEST_CASE("frames: FrameCounter and its threads may end in any order") {
  for (int round = 0; round < 3; ++round) {
    auto frames = std::make_unique<FrameCounter>(FrameOptions{.events = {"page-faults"}});
    std::atomic<int> stage{0};
    std::thread thread([&] {
      { PERFKIT_ZONE(*frames, "z"); }
      stage.store(1);
      while (stage.load() != 2) std::this_thread::yield();
    });
    while (stage.load() != 1) std::this_thread::yield();
    if (round != 0) frames.reset();
    stage.store(2);
    thread.join();
  }
}

TEST_CASE("frames: a zone that is open at the end of its thread was never left") {
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  frames.Enter({"open"});
  for (int i = 0; i < 3; ++i) frames.Mark();
  CHECK(frames.Stats().mismatched == 0);  // It may still be left.
  frames.Leave();
  std::thread([&] { frames.Enter({"one"}); }).join();
  frames.Mark();
  CHECK(frames.Stats().mismatched == 1);
  CHECK(frames.FormatZones().find("\n1 zone left without having been entered, or never left\n") != std::string::npos);
  std::thread([&] {
    const FrameCounter::AttachedThread attached = frames.AttachThread("detached");
    frames.Enter({"one"});
    frames.Enter({"two"});
  }).join();
  CHECK(frames.Stats().mismatched == 3);
  CHECK(frames.FormatZones().find("\n3 zones left without having been entered, or never left\n") != std::string::npos);

  std::unique_ptr<FrameCounter> of_ended;
  std::thread([&] {
    of_ended = std::make_unique<FrameCounter>(FrameOptions{.events = kEvents});
    of_ended->Mark();
    of_ended->Enter({"open"});
  }).join();
  CHECK(of_ended->Stats().mismatched == 1);
}

TEST_CASE("frames: the report counts one mark, and two marks", "[frames]") {
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  for (const char* note : {"\n1 mark by a thread that", "\n2 marks by a thread that"}) {
    std::thread([&] { frames.Mark(); }).join();
    const std::string report = frames.FormatZones();
    INFO(report);
    CHECK(report.find(note) != std::string::npos);
  }
}

TEST_CASE("frames: the report names everything", "[law]") {
  FrameCounter frames({.events = kEvents, .hitch_budget = std::chrono::milliseconds(5)});
  frames.Mark();
  for (int frame = 0; frame < 20; ++frame) {
    PERFKIT_ZONE(frames, "physics");
    {
      PERFKIT_ZONE(frames, "solve");
      testing::Spin(20'000);
    }
    if (frame == 15) testing::Sleep(8'000'000);
    frames.Mark();
  }
  const std::string report = frames.FormatZones();
  INFO(report);
  for (const char* text : {"wall, ms", "frame", "  physics", "    solve", "p99", "hitch", "frame 15", "own cost",
                           "; subtracted above from totals and selfs, and the remaining error is "}) {
    CHECK(report.find(text) != std::string::npos);
  }
  for (size_t at = 0; at < report.size();) {
    const size_t end = report.find('\n', at);
    REQUIRE(end != std::string::npos);
    at = end + 1;
  }
}

}  // namespace
}  // namespace perfkit
