// Two kinds of core: a generic event is counted on both, an event of one kind there only, and says so.
//
// The machine (tests/machine/hybrid.dts) has armv8_cortex_a53 on CPUs 0 and 1 and armv8_cortex_a72 on CPUs 2 and 3, and
// after both the same exact counters: whatever a thread does counts the same on each.
#include <sched.h>

#include <catch2/catch.hpp>
#include <map>

#include "perfkit/format.h"
#include "perfkit/frame_counter.h"
#include "perfkit/sampler.h"
#include "src/event/pmu.h"
#include "tests/pmu/pmu.h"
#include "tests/sample/support.h"

namespace perfkit {
namespace {

using testing::ForEachSample;
using testing::kLoopInstructions;
using testing::Loop;

constexpr int kLittle = 0, kOtherLittle = 1, kBig = 2, kOtherBig = 3;
constexpr uint64_t kRounds = 500'000;
constexpr uint64_t kInstructions = kRounds * kLoopInstructions;
// This thread on one CPU only; anywhere again when it dies.
class OnCpu {
 public:
  explicit OnCpu(int cpu) { Move(cpu); }
  ~OnCpu() { sched_setaffinity(0, sizeof(before_), &before_); }
  void Move(int cpu) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) FAIL("cannot move to CPU " << cpu);  // REQUIRE counts more
  }

 private:
  static cpu_set_t Current() {
    cpu_set_t set;
    REQUIRE(sched_getaffinity(0, sizeof(set), &set) == 0);
    return set;
  }
  cpu_set_t before_ = Current();
};

#define NEED_HYBRID() \
  NEED_EXACT_PMU();   \
  if (event::HybridCorePmus({}).size() != 2) SKIP_TEST("this machine has not two kinds of core")

// Checks that a count is at least that of `loops`, and at most what the machine's clock had time for since `start_ns`.
// Not exact: with several CPUs, QEMU counts for each what the others do meanwhile.
void CheckWhole(const Count& count, uint64_t loops, uint64_t start_ns, uint64_t per_instruction = 1) {
  const uint64_t time_ns = testing::NowNs() - start_ns;
  INFO(count.value << " in " << count.time_running_ns << " of " << count.time_enabled_ns << " ns, " << time_ns);
  CHECK(count.validity.counted());
  CHECK_FALSE(count.validity.has(Validity::kMultiplexed));
  CHECK(count.coverage() == 1);
  CHECK(count.scaled() == count.value);
  CHECK(count.value >= loops * kInstructions * per_instruction);
  CHECK(testing::ClockAllows(count.value, start_ns, per_instruction));
  CHECK(count.time_running_ns <= time_ns);
}

CounterSet MustOpenAt(std::string_view events, Target target) {
  const auto groups = ParseEventList(events);
  INFO(groups.status().ToString());
  REQUIRE(groups.ok());
  absl::StatusOr<CounterSet> set = CounterSet::Open(*groups, target);
  INFO(set.status().ToString());
  REQUIRE(set.ok());
  return *std::move(set);
}

TEST_CASE("a generic event counts on every kind of core", "[hybrid][law]") {
  NEED_HYBRID();
  for (const std::optional<ReadPath> path : {std::optional<ReadPath>(), std::optional(ReadPath::kGroupRead)}) {
    CounterOptions options;
    options.only_path = path;
    OnCpu here(kLittle);
    const CounterSet set = MustOpen(std::array{EventSpec("instructions:u"), EventSpec("cycles:u")}, options);
    CHECK(set.event(0).parts.size() == 2);
    CHECK_FALSE(set.fixed_flags(0).has(Validity::kSomeCpus));
    for (const int cpu : {kLittle, kBig, kOtherLittle, kOtherBig}) {
      CAPTURE(cpu);
      here.Move(cpu);
      Snapshot begin, end;
      const uint64_t start = testing::NowNs();
      set.Read(begin);
      Loop(kRounds);
      set.Read(end);
      CheckWhole(set.Difference(begin, end, 0), 1, start);
      CheckWhole(set.Difference(begin, end, 1), 1, start, testing::CyclesPerInstruction());
    }
  }
}

TEST_CASE("a count is whole when the thread moves from one kind of core to the other", "[hybrid][law]") {
  NEED_HYBRID();
  OnCpu here(kLittle);
  const CounterSet set = MustOpen(std::array{EventSpec("instructions:u"), EventSpec("cycles:u")});
  int migrated = 0;
  for (int i = 0; i < 40; ++i) {
    Snapshot begin, end;
    const uint64_t start = testing::NowNs();
    set.Read(begin);
    Loop(kRounds);
    here.Move((i * 3 + 2) % 4);
    Loop(kRounds);
    here.Move((i + 1) % 4);
    Loop(kRounds);
    set.Read(end);
    const Count count = set.Difference(begin, end, 0);
    migrated += count.validity.has(Validity::kMigrated) ? 1 : 0;
    CheckWhole(count, 3, start);
    CheckWhole(set.Difference(begin, end, 1), 3, start, testing::CyclesPerInstruction());
  }
  CHECK(migrated > 20);
}

TEST_CASE("frames and other threads' counts are whole, too", "[hybrid][law]") {
  NEED_HYBRID();
  OnCpu here(kBig);
  FrameCounter frames({.events = {"instructions:u"}});
  frames.Mark();
  frames.Mark();
  const CounterSet set = MustOpenAt("instructions:u,page-faults", Target::Thread(gettid()));
  for (const int cpu : {kLittle, kOtherBig, kBig, kOtherLittle}) {
    Snapshot begin, end;
    const uint64_t start = testing::NowNs();
    set.Read(begin);
    frames.Mark();
    Loop(kRounds);
    here.Move(cpu);
    Loop(kRounds);
    frames.Mark();
    set.Read(end);
    CheckWhole(set.Difference(begin, end, 0), 2, start);
    CHECK(frames.last().values[0] >= 2 * kInstructions);
    CHECK(frames.last().values[0] <= set.Difference(begin, end, 0).value);
  }
}

TEST_CASE("an event of one kind of core counts there, and says that this is not all", "[hybrid][law]") {
  NEED_HYBRID();
  for (const std::optional<ReadPath> path : {std::optional<ReadPath>(), std::optional(ReadPath::kGroupRead)}) {
    CounterOptions options;
    options.only_path = path;
    OnCpu here(kLittle);
    const std::array events = {EventSpec("armv8_cortex_a53/inst_retired/u"),
                               EventSpec("armv8_cortex_a72/inst_retired/u"), EventSpec("instructions:u")};
    const CounterSet set = MustOpen(events, options);
    for (const size_t i : {0, 1}) CHECK(set.fixed_flags(i).has(Validity::kSomeCpus));
    Snapshot begin, middle, end;
    const uint64_t start = testing::NowNs();
    set.Read(begin);
    Loop(kRounds);
    set.Read(middle);
    here.Move(kOtherBig);
    Loop(2 * kRounds);
    set.Read(end);
    const Count little = set.Difference(begin, end, 0), big = set.Difference(begin, end, 1);
    const Count all = set.Difference(begin, end, 2);
    CheckWhole(all, 3, start);
    for (const auto& [count, loops] : {std::pair(little, 1), std::pair(big, 2)}) {
      CHECK(count.value >= loops * kInstructions);
      CHECK(count.validity.has(Validity::kMultiplexed));
      CHECK(count.validity.has(Validity::kSomeCpus));
      CHECK_FALSE(count.scaled().has_value());
    }
    CHECK(little.value + big.value == Approx(static_cast<double>(all.value)).epsilon(0.02));
    CHECK(little.coverage() + big.coverage() == Approx(1).epsilon(0.02));
    // On its own core only it is a count like any other; never there, it is none.
    CHECK(set.Difference(begin, middle, 0).coverage() == 1);
    CHECK(set.Difference(begin, middle, 0).scaled() == set.Difference(begin, middle, 0).value);
    CHECK_FALSE(set.Difference(begin, middle, 1).validity.counted());
  }
}

TEST_CASE("a register is read on the core that has it, and the kernel is asked on others", "[hybrid][law]") {
  NEED_HYBRID();
  OnCpu here(kLittle);
  if (const std::string why = testing::WhyNoUserReads("armv8_cortex_a53/inst_retired/u"); !why.empty()) SKIP_TEST(why);
  const CounterSet set = MustOpen(std::array{EventSpec("armv8_cortex_a53/inst_retired/u")}, Only(ReadPath::kUserPage));
  Snapshot begin, end;
  const uint64_t start = testing::NowNs();
  set.Read(begin);
  CHECK(begin.fallback == 0);
  for (int i = 0; i < 50; ++i) {
    Loop(kRounds / 10);
    here.Move(kBig);
    Loop(kRounds / 10);
    set.Read(end);
    CHECK(end.fallback == 1);
    here.Move(kLittle);
  }
  set.Read(end);
  CHECK(end.fallback == 0);
  const Count count = set.Difference(begin, end, 0);
  CHECK(count.value >= 5 * kInstructions);
  CHECK(count.value * testing::CyclesPerInstruction() <=
        (testing::NowNs() - start) / 3 * 2);  // half of it was elsewhere
}

TEST_CASE("a group is one for each kind of core, and its events stay together", "[hybrid][law]") {
  NEED_HYBRID();
  OnCpu here(kLittle);
  const CounterSet set = MustOpenAt("{instructions,cycles,alignment-faults}:u", Target::ThisThread());
  const size_t before = OpenDescriptors();
  {
    const CounterSet again = MustOpenAt("{instructions,cycles}:u", Target::ThisThread());
    CHECK(OpenDescriptors() == before + 5);  // and a dummy, whose page tells switches
  }
  Snapshot begin, end;
  const uint64_t start = testing::NowNs();
  set.Read(begin);
  Loop(kRounds);
  here.Move(kBig);
  Loop(kRounds);
  set.Read(end);
  const Count instructions = set.Difference(begin, end, 0), cycles = set.Difference(begin, end, 1);
  CheckWhole(instructions, 2, start);
  CHECK(cycles.time_running_ns == instructions.time_running_ns);
  CHECK(static_cast<double>(cycles.value) / static_cast<double>(instructions.value) ==
        Approx(static_cast<double>(testing::CyclesPerInstruction())).epsilon(0.01));
  // Counted by the kernel, wherever the group runs.
  CHECK(set.Difference(begin, end, 2).validity.counted());
  CHECK(set.Difference(begin, end, 2).coverage() == 1);
}

TEST_CASE("groups across kinds of core are refused", "[hybrid]") {
  NEED_HYBRID();
  for (const char* const text : {"{armv8_cortex_a53/inst_retired/,armv8_cortex_a72/inst_retired/}:u",
                                 "{armv8_cortex_a53/inst_retired/,cycles}:u"}) {
    CAPTURE(text);
    const auto groups = ParseEventList(text);
    REQUIRE(groups.ok());
    const absl::StatusOr<CounterSet> set = CounterSet::Open(*groups);
    REQUIRE_FALSE(set.ok());
    INFO(set.status().ToString());
    CHECK(absl::IsInvalidArgument(set.status()));
    CHECK(set.status().message().find("same CPUs") != std::string_view::npos);
  }
}

TEST_CASE("more events than counters scale to the truth on both kinds of core", "[hybrid][law]") {
  NEED_HYBRID();
  constexpr size_t kMany = 9;
  OnCpu here(kLittle);
  const CounterSet set = MustOpen(std::vector<EventSpec>(kMany, "instructions:u"), Only(ReadPath::kGroupRead));
  Snapshot begin, end;
  constexpr uint64_t kLong = 12 * kRounds;
  const uint64_t start = testing::NowNs();
  set.Read(begin);
  Loop(kLong);
  here.Move(kBig);
  Loop(kLong);
  set.Read(end);
  const auto time = static_cast<double>(testing::NowNs() - start);
  for (size_t i = 0; i < kMany; ++i) {
    const Count count = set.Difference(begin, end, i);
    INFO("event " << i << ": " << count.value << " in " << count.time_running_ns << " of " << count.time_enabled_ns);
    CHECK(count.validity.has(Validity::kMultiplexed));
    REQUIRE(count.scaled().has_value());
    const auto scaled = static_cast<double>(*count.scaled());
    CHECK(scaled >= 0.9 * 2 * kLong * kLoopInstructions);
    CHECK(scaled * static_cast<double>(testing::CyclesPerInstruction()) <= 1.1 * time);
  }
}

TEST_CASE("a CPU and the whole system have the events of their cores", "[hybrid][law]") {
  NEED_HYBRID();
  if (geteuid() != 0) SKIP_TEST("needs root to count whole CPUs");
  for (const int cpu : {kLittle, kBig}) {
    OnCpu here(cpu);
    const CounterSet one = MustOpenAt("instructions:u", Target::Cpu(cpu));
    const CounterSet other = MustOpenAt("instructions:u", Target::Cpu((cpu + 2) % 4));
    const CounterSet all = MustOpenAt("instructions:u,armv8_cortex_a72/inst_retired/u", Target::System());
    std::array<Snapshot, 3> begin, end;
    const uint64_t start = testing::NowNs();
    one.Read(begin[0]), other.Read(begin[1]), all.Read(begin[2]);
    Loop(kRounds);
    one.Read(end[0]), other.Read(end[1]), all.Read(end[2]);
    CheckWhole(one.Difference(begin[0], end[0], 0), 1, start);
    CHECK(other.Difference(begin[1], end[1], 0).value < kInstructions / 10);
    const Count system = all.Difference(begin[2], end[2], 0), big = all.Difference(begin[2], end[2], 1);
    CHECK(system.value >= kInstructions);
    CHECK(system.coverage() == 1);
    CHECK(system.time_enabled_ns == Approx(static_cast<double>(system.time_running_ns)).epsilon(0.001));
    CHECK((big.value >= kInstructions) == (cpu == kBig));
    CHECK(big.coverage() == 1);
  }
}

// CPU of each sample, as a histogram.
std::map<uint32_t, uint64_t> SampledCpus(Sampler& sampler) {
  std::map<uint32_t, uint64_t> seen;
  ForEachSample(sampler, [&](const Sample& sample, const SamplerRecord&) { ++seen[*sample.cpu()]; });
  return seen;
}

TEST_CASE("a sampler has samples of both kinds of core", "[hybrid]") {
  NEED_HYBRID();
  const uint64_t period = 10'000 * testing::CyclesPerInstruction();
  for (const Target target : {Target::ThisThread(), Target::AllThreads()}) {
    OnCpu here(kLittle);
    SamplerOptions options;
    options.events = {{.event = "cycles:u", .rate = Period{period}}};
    // The group of a sample cannot be inherited before 6.12.
    if (target.kind == Target::Kind::kThisThread) options.events[0].followers = {"instructions:u"};
    options.fields = kSampleCpu;
    absl::StatusOr<Sampler> sampler = Sampler::Open(options, target);
    INFO(sampler.status().ToString());
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    for (const int cpu : {kLittle, kBig, kOtherLittle, kOtherBig}) {
      here.Move(cpu);
      Loop(kRounds);
    }
    REQUIRE(sampler->Stop().ok());
    std::map<uint32_t, uint64_t> seen = SampledCpus(*sampler);
    uint64_t all = 0;
    for (const uint32_t cpu : {0u, 1u, 2u, 3u}) {
      CAPTURE(cpu);
      CHECK(seen[cpu] >= 98);  // of 100: what a counter has begun when the thread moves, it ends when it is back
      all += seen[cpu];
    }
    const EventAccounting accounting = sampler->stats().events[0];
    CHECK(accounting.lost == 0);
    CHECK(accounting.counted >= 4 * kInstructions * testing::CyclesPerInstruction());
    CHECK(all == accounting.delivered);
    // An overflow that is noticed more than a period late stands for two: the machine runs beside others.
    CHECK(100 * all >= 95 * (accounting.counted / period));
    CHECK(all <= accounting.counted / period + 8);
  }
}

}  // namespace
}  // namespace perfkit
