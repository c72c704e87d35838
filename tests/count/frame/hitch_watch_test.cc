// Hitches explained from rings in ordinary memory: pairs, overwriting, malformed records, the sentence.
#include "src/count/frame/hitch_watch.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "src/sys/perf_abi.h"
#include "tests/count/frame/made_up_reader.h"
#include "tests/support/signal_storm.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::count {
namespace {

// A ring that the test writes as the kernel would.
class MadeUpRing {
 public:
  explicit MadeUpRing(size_t records, uint64_t start = 0) : data_(records * kDetailRecordBytes), head_(start) {}
  DetailRing view() const { return {data_, &head_}; }
  uint64_t head() const { return head_; }

  void Switch(bool out, bool preempted, uint64_t time_ns, uint32_t cpu) {
    const uint32_t misc = (out ? sys::kMiscSwitchOut : 0) | (preempted ? sys::kMiscSwitchOutPreempt : 0);
    Append(sys::kRecordSwitch | uint64_t{misc} << 32, 0, time_ns, cpu);
  }
  void Fault(uint64_t address) { Append(sys::kRecordSample, 0x401000, 1, address); }
  void Append(uint64_t header, uint64_t a, uint64_t b, uint64_t c, uint64_t size = kDetailRecordBytes) {
    const uint64_t words[4] = {header | size << 48, a, b, c};
    std::memcpy(data_.data() + head_ % data_.size(), words, sizeof(words));
    head_ += sizeof(words);
  }
  std::vector<std::byte>& bytes() { return data_; }

 private:
  std::vector<std::byte> data_;
  uint64_t head_;
};

TEST_CASE("switches: pairs become preemptions and waits with their times") {
  MadeUpRing ring(64);
  ring.Switch(true, false, 100, 0);  // of an earlier frame
  ring.Switch(false, false, 200, 0);
  const uint64_t from = ring.head();
  ring.Switch(true, true, 1000, 0);
  ring.Switch(false, false, 1500, 0);
  ring.Switch(true, false, 2000, 0);
  ring.Switch(false, false, 9000, 1);
  ring.Switch(true, true, 9500, 1);
  ring.Switch(false, false, 9600, 1);
  const SwitchTally tally = TallySwitches(ring.view(), from);
  CHECK(tally.preemptions == 2);
  CHECK(tally.preempted_ns == 600);
  CHECK(tally.waits == 1);
  CHECK(tally.waited_ns == 7000);
  CHECK(tally.migrations == 1);
  CHECK(!tally.at_least);
  const SwitchTally later = TallySwitches(ring.view(), from + kDetailRecordBytes);
  CHECK(later.preemptions == 1);
  CHECK(later.at_least);  // how long the thread was away before its first switch in is unknown
}

TEST_CASE("switches: what was overwritten is told, for every start of the 64-bit stream") {
  for (const uint64_t start : {uint64_t{0}, uint64_t{64}, (uint64_t{1} << 32) - 64, uint64_t{0} - 4096}) {
    MadeUpRing ring(16, start);
    for (uint64_t pair = 0; pair < 20; ++pair) {
      ring.Switch(true, false, pair * 100, 0);
      ring.Switch(false, false, pair * 100 + 10, 0);
    }
    const SwitchTally tally = TallySwitches(ring.view(), start);
    CHECK(tally.at_least);
    CHECK(tally.waits == 8);
    CHECK(tally.waited_ns == 80);
  }
}

TEST_CASE("faults: the number is exact even when the addresses are gone") {
  MadeUpRing ring(16);
  const uint64_t from = ring.head();
  for (uint64_t i = 0; i < 10; ++i) ring.Fault(0x1000 * i);
  std::array<uint64_t, 4> few{};
  FaultTally tally = TallyFaults(ring.view(), from, few);
  CHECK(tally.faults == 10);
  CHECK(tally.addresses == 4);
  CHECK(few == std::array<uint64_t, 4>{0, 0x1000, 0x2000, 0x3000});
  CHECK(!tally.at_least);
  for (uint64_t i = 10; i < 100; ++i) ring.Fault(0x1000 * i);
  tally = TallyFaults(ring.view(), from, few);
  CHECK(tally.faults == 100);
  CHECK(tally.at_least);
  CHECK(few[0] == 0x1000 * 84);
}

TEST_CASE("rings: bytes that are not what they should be are counted out, never followed") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200; ++round) {
    MadeUpRing ring(32);
    for (std::byte& byte : ring.bytes()) byte = static_cast<std::byte>(random());
    const uint64_t from = ring.head();
    for (int i = 0; i < 20; ++i)
      ring.Append(random(), random(), random(), random(), random() % 2 ? 32 : random() % 65536);
    std::array<uint64_t, 16> addresses;
    CHECK(TallyFaults(ring.view(), from, addresses).addresses <= 16);
    const SwitchTally tally = TallySwitches(ring.view(), from);
    CHECK(tally.preemptions + tally.waits <= 10);
  }
  MadeUpRing ring(32);
  ring.Switch(true, false, 100, 0);
  ring.Append(sys::kRecordSwitch, 0, 300, 0, 24);
  ring.Switch(false, false, 500, 0);
  CHECK(TallySwitches(ring.view(), 0).at_least);
}

MadeUpRing* storm_ring = nullptr;

// Overwrites the whole ring.
void FaultALap() {
  for (int i = 0; i < 17; ++i) storm_ring->Fault(storm_ring->head() / kDetailRecordBytes);
}

TEST_CASE("rings: a record that is overwritten while it is read is not believed", "[law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see handlers");
  constexpr uint64_t kRecords = 16;
  MadeUpRing ring(kRecords);
  storm_ring = &ring;
  FaultALap();
  const testing::SignalStorm storm(FaultALap);
  while (storm.handled() < 500) {
    std::array<uint64_t, kRecords> addresses{};
    const uint64_t from = ring.view().Head() - kRecords * kDetailRecordBytes;
    const FaultTally tally = TallyFaults(ring.view(), from, addresses);
    // Addresses are the records' numbers: what one ring holds at one time lies close together.
    for (size_t i = 1; i < tally.addresses; ++i) REQUIRE(addresses[i] > addresses[i - 1]);
    if (tally.addresses > 0) REQUIRE(addresses[tally.addresses - 1] - addresses[0] < kRecords);
  }
}

TEST_CASE("rings: none at all is no answer, not 0") {
  CHECK(!DetailRing{}.known());
  CHECK(TallySwitches({}, 0).waits == 0);
  CHECK(TallyFaults({}, 0, {}).faults == 0);
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
  MadeUpRing switches(64), faults(64);
  watch.Attach(switches.view(), faults.view());
  switches.Switch(true, false, 100, 0);
  switches.Switch(false, false, 5'000'100, 0);
  faults.Fault(0x1000);
  record.missing = 0;
  CHECK(std::string(watch.Explain(record, frames.tree).cause) ==
        "waited 1 time for 5.00 ms; 1 page fault, from 0x1000 on; ran 40.00 ms itself");
}

TEST_CASE("hitches: only what the rings say of this frame, and only the last are kept") {
  MadeUpRing switches(64), faults(64);
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
