// Hitches explained from rings in ordinary memory, and the sentence.
#include "src/count/frame/hitch_watch.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>

#include "tests/count/frame/made_up_reader.h"
#include "tests/count/frame/made_up_rings.h"

namespace perfkit::count {
namespace {

TEST_CASE("rings: none at all is no answer, not 0") {
  CHECK(!DetailRing{}.known());
  CHECK(TallySwitches({}, 0).waits == 0);
  CHECK(TallyFaults({}, {}, {}).faults == 0);
  Hitch hitch;
  hitch.wall_ns = 30'000'000;
  hitch.budget_ns = 20'000'000;
  WriteCause(&hitch);
  CHECK(std::string(hitch.cause) == "the kernel does not tell");
}

TEST_CASE("cause: the larger first, and numbers as people read them") {
  Hitch hitch;
  hitch.wall_ns = 45'000'000;
  hitch.budget_ns = 20'000'000;
  hitch.switches_known = true;
  hitch.preemptions = 3;
  hitch.preempted_ns = 4'204'999;
  hitch.waits = 1;
  hitch.waited_ns = 18'000'000;
  hitch.faults = 812;
  hitch.fault_addresses[0] = 0x7f0000001000;
  hitch.fault_address_count = 1;
  hitch.migrations = 1;
  WriteCause(&hitch);
  CHECK(std::string(hitch.cause) ==
        "waited 1 time for 18.00 ms; preempted 3 times for 4.20 ms; 812 page faults, from 0x7f0000001000 on; "
        "1 migration; ran 22.80 ms itself");
  hitch = {};
  hitch.switches_known = true;
  hitch.wall_ns = 25'000'000;
  hitch.budget_ns = 20'000'000;
  WriteCause(&hitch);
  CHECK(std::string(hitch.cause) == "ran 25.00 ms itself");
  hitch.at_least = true;
  hitch.waits = ~uint64_t{0};
  hitch.preemptions = hitch.faults = hitch.migrations = ~uint64_t{0};
  hitch.waited_ns = hitch.preempted_ns = ~uint64_t{0} / 4;
  WriteCause(&hitch);
  CHECK(std::strlen(hitch.cause) < sizeof(hitch.cause));
  CHECK(std::string(hitch.cause).find("at least") != std::string::npos);
}

// The sum of all times that a cause tells, in hundredths of milliseconds.
uint64_t HundredthsIn(const std::string& cause) {
  uint64_t sum = 0;
  for (size_t unit = cause.find(" ms"); unit != std::string::npos; unit = cause.find(" ms", unit + 1)) {
    const size_t number = cause.find_last_of(' ', unit - 1) + 1;
    sum += static_cast<uint64_t>(std::stod(cause.substr(number, unit - number)) * 100 + 0.5);
  }
  return sum;
}

TEST_CASE("cause: the times that it tells come to no more than the frame's") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 1000; ++round) {
    Hitch hitch;
    hitch.switches_known = random() % 2 == 0;
    hitch.off_cpu_known = !hitch.switches_known;
    hitch.budget_ns = random() % 20'000'000;
    const uint64_t preempted_ns = random() % 30'000'000, waited_ns = random() % 30'000'000;
    if (hitch.switches_known) {
      hitch.preemptions = hitch.waits = 1 + random() % 3;
      hitch.preempted_ns = preempted_ns;
      hitch.waited_ns = waited_ns;
    } else {
      hitch.off_cpu_ns = preempted_ns + waited_ns;
    }
    const uint64_t ran_ns = random() % 30'000'000;
    hitch.wall_ns = ran_ns + preempted_ns + waited_ns;
    WriteCause(&hitch);
    const std::string cause = hitch.cause;
    INFO(cause);
    // Each of the three is rounded by half a hundredth at most.
    const uint64_t told = 10'000 * HundredthsIn(cause);
    CHECK(told <= hitch.wall_ns + 15'000);
    const bool ran_too_long = ran_ns > hitch.budget_ns;
    CHECK((cause.find("itself") != std::string::npos) == ran_too_long);
    if (ran_too_long) CHECK(told + 15'000 >= hitch.wall_ns);
  }
}

// A tree in which the test says how long each zone took.
class ScriptedFrames {
 public:
  void Zone(const char* name, uint64_t own_ns, auto&& inside) {
    *tree.Enter({name}) = now_;
    now_.ticks += own_ns;
    inside();
    tree.scratch() = now_;
    tree.Leave();
  }
  void Zone(const char* name, uint64_t own_ns) {
    Zone(name, own_ns, [] {});
  }
  const FrameRecord& Mark(uint64_t idle_ns = 0) {
    now_.ticks += idle_ns;
    tree.scratch() = now_;
    return tree.EndFrameAtScratch(number_++, kOneNsATick);
  }
  ZoneTree tree{{.events = 1}};

 private:
  Snapshot now_{};
  uint64_t number_ = 0;
};

TEST_CASE("worst zone: the deepest one that holds the excess") {
  ScriptedFrames frames;
  const auto run = [&](uint64_t solve, uint64_t draw) -> const FrameRecord& {
    frames.Zone("physics", 1000, [&] {
      frames.Zone("solve", solve);
      frames.Zone("collide", 3000);
    });
    frames.Zone("draw", draw);
    return frames.Mark();
  };
  for (int i = 0; i < 50; ++i) run(2000, 9000);
  HitchWatch watch(16'000, {}, {});
  const FrameRecord& usual = run(2000, 9000);
  CHECK(!watch.IsHitch(usual.wall_ns));
  const FrameRecord& slow = run(80'000, 9000);
  REQUIRE(watch.IsHitch(slow.wall_ns));
  const Hitch& hitch = watch.Explain(slow, frames.tree);
  CHECK(std::string(hitch.worst_zone) == "solve");
  CHECK(hitch.worst_excess_ns >= 77'000);
  CHECK(hitch.frame == 51);
  CHECK(!hitch.switches_known);
  const Hitch& second = watch.Explain(run(2000, 30'000), frames.tree);
  CHECK(std::string(second.worst_zone) == "draw");
  const Hitch& idle = watch.Explain(frames.Mark(100'000), frames.tree);
  CHECK(std::string(idle.worst_zone).empty());
  CHECK(watch.count() == 3);
}

TEST_CASE("worst zone: one that hardly any frame has exceeds by all that it took") {
  ScriptedFrames frames;
  for (int i = 0; i < 50; ++i) {
    frames.Zone("draw", 9000);
    frames.Mark();
  }
  HitchWatch watch(16'000, {}, {});
  frames.Zone("load", 50'000);
  frames.Zone("draw", 12'000);
  const Hitch& hitch = watch.Explain(frames.Mark(), frames.tree);
  CHECK(std::string(hitch.worst_zone) == "load");
  CHECK(hitch.worst_excess_ns == 50'000);
}

TEST_CASE("worst zone: one that half of the frames have is compared with its own median") {
  for (const int with : {2, 10, 25, 26, 49, 50}) {
    ScriptedFrames frames;
    for (int i = 0; i < 50; ++i) {
      if (i >= 50 - with) frames.Zone("sometimes", 50'000);
      frames.Zone("draw", 9000);
      frames.Mark();
    }
    HitchWatch watch(16'000, {}, {});
    frames.Zone("sometimes", 50'000);
    frames.Zone("draw", 12'000);
    const Hitch& hitch = watch.Explain(frames.Mark(), frames.tree);
    const bool rare = 2 * (with + 1) < 51;
    INFO("in " << with << " of 50 frames");
    CHECK(std::string(hitch.worst_zone) == (rare ? "sometimes" : "draw"));
    if (rare) CHECK(hitch.worst_excess_ns == 50'000);
    if (!rare) CHECK(hitch.worst_excess_ns <= 3000);
  }
}

TEST_CASE("hitches: without a log the frame's own events tell the cause") {
  ScriptedFrames frames;
  FrameRecord record;
  record.number = 1;
  record.wall_ns = 45'000'000;
  record.missing = 0;
  record.values = {30'000'000, 812, 3, 2};  // task-clock, page-faults, context-switches, migrations
  HitchWatch watch(20'000'000, {}, {});
  watch.Substitute({.task_clock = 0, .page_faults = 1, .context_switches = 2, .migrations = 3});
  const Hitch all = watch.Explain(record, frames.tree);
  CHECK(std::string(all.cause) ==
        "off the CPU for 15.00 ms; 3 switches; 812 page faults; 2 migrations; ran 30.00 ms itself");
  CHECK(!all.switches_known);
  CHECK(all.off_cpu_known);
  CHECK(all.off_cpu_ns == 15'000'000);
  CHECK(all.faults_known);
  // Any of them may have no number: that is never told as 0.
  for (uint32_t missing = 0; missing < 16; ++missing) {
    record.missing = missing;
    const Hitch some = watch.Explain(record, frames.tree);
    const std::string cause = some.cause;
    INFO(cause);
    CHECK((cause.find("off the CPU") != std::string::npos) == ((missing & 1) == 0));
    CHECK((cause.find("itself") != std::string::npos) == ((missing & 1) == 0));
    CHECK((cause.find("faults") != std::string::npos) == ((missing & 2) == 0));
    CHECK((cause.find("switches") != std::string::npos) == ((missing & 4) == 0));
    CHECK((cause.find("migrations") != std::string::npos) == ((missing & 8) == 0));
    CHECK((cause == "the kernel does not tell") == (missing == 15));
    CHECK(some.off_cpu_known == ((missing & 1) == 0));
    CHECK(some.faults_known == ((missing & 2) == 0));
    CHECK(some.migrations_known == ((missing & 8) == 0));
  }
  // A log is believed before the frame's own events.
  MadeUpRing switches(64);
  MadeUpFaults faults(64);
  watch.Attach(switches.view(), faults.view());
  switches.Switch(true, false, 100, 0);
  switches.Switch(false, false, 5'000'100, 0);
  faults.Fault(0x1000);
  record.missing = 0;
  CHECK(std::string(watch.Explain(record, frames.tree).cause) ==
        "waited 1 time for 5.00 ms; 1 page fault, from 0x1000 on; ran 40.00 ms itself");
}

TEST_CASE("hitches: only what the rings say of this frame, and only the last are kept") {
  MadeUpRing switches(64);
  MadeUpFaults faults(64);
  ScriptedFrames frames;
  HitchWatch watch(10, switches.view(), faults.view());
  faults.Fault(0x5000);
  frames.Mark(1);
  watch.BeginFrame();
  for (uint64_t i = 0; i < HitchWatch::kKept + 6; ++i) {
    faults.Fault(0x1000 * i);
    switches.Switch(true, true, 100 * i, 0);
    switches.Switch(false, false, 100 * i + 7, 0);
    const FrameRecord& record = frames.Mark(1000);
    REQUIRE(watch.IsHitch(record.wall_ns));
    const Hitch& hitch = watch.Explain(record, frames.tree);
    watch.BeginFrame();
    REQUIRE(hitch.faults == 1);
    REQUIRE(hitch.fault_addresses[0] == 0x1000 * i);
    REQUIRE(hitch.preemptions == 1);
    REQUIRE(hitch.preempted_ns == 7);
    REQUIRE(!hitch.at_least);
  }
  CHECK(watch.kept() == HitchWatch::kKept);
  CHECK(watch[0].frame == 7);
  CHECK(watch[HitchWatch::kKept - 1].frame == HitchWatch::kKept + 6);
  CHECK(!HitchWatch{}.IsHitch(~uint64_t{0}));
}

}  // namespace
}  // namespace perfkit::count
