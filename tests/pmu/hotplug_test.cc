// CPUs that go offline and come back under what is counted there: a thread's numbers stay right, and a CPU's end, and
// are not taken for zero.
#include <sched.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <set>

#include "perfkit/sampler.h"
#include "tests/pmu/pmu.h"
#include "tests/sample/support.h"

namespace perfkit {
namespace {

using testing::kLoopInstructions;
using testing::Loop;

constexpr uint64_t kRounds = 500'000;
constexpr uint64_t kInstructions = kRounds * kLoopInstructions;
constexpr int kLastCpu = 1;

// CPU 1, which is online when this dies.
class SecondCpu {
 public:
  ~SecondCpu() {
    Bring(true);
    Allow(0, 1);
  }
  bool Bring(bool online) const {
    FILE* const file = fopen("/sys/devices/system/cpu/cpu1/online", "w");
    if (file == nullptr) return false;
    const bool written = fputs(online ? "1" : "0", file) >= 0;
    return fclose(file) == 0 && written;
  }
  // This thread may run on the CPUs from `first` to `last`.
  static void Allow(int first, int last) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int cpu = first; cpu <= last; ++cpu) CPU_SET(cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) FAIL("cannot move to CPU " << first);
  }
};

#define NEED_HOTPLUG()                                                                \
  NEED_EXACT_PMU();                                                                   \
  if (geteuid() != 0) SKIP_TEST("needs root to take a CPU offline");                  \
  if (access("/sys/devices/system/cpu/cpu1/online", W_OK) != 0) SKIP_TEST("one CPU"); \
  const SecondCpu second

// Between what was done and what the clock had time for: with two CPUs an emulated machine is not exact
// (hybrid_test.cc).
void CheckLoops(const Count& count, uint64_t loops, uint64_t start_ns, uint64_t per_instruction = 1) {
  INFO(count.value << " in " << count.time_running_ns << " of " << count.time_enabled_ns << " ns");
  CHECK(count.validity.counted());
  CHECK(count.coverage() == 1);
  CHECK(count.value >= loops * kInstructions * per_instruction);
  CHECK(testing::ClockAllows(count.value, start_ns, per_instruction));
}

TEST_CASE("a thread that is pushed off its CPU keeps its counts", "[cpus][law]") {
  NEED_HOTPLUG();
  for (const std::optional<ReadPath> path : {std::optional<ReadPath>(), std::optional(ReadPath::kGroupRead)}) {
    CounterOptions options;
    options.only_path = path;
    const CounterSet set = MustOpen(std::array{EventSpec("instructions:u"), EventSpec("cycles:u")}, options);
    for (int i = 0; i < 4; ++i) {
      SecondCpu::Allow(kLastCpu, kLastCpu);
      Snapshot begin, away, end;
      const uint64_t start = testing::NowNs();
      set.Read(begin);
      Loop(kRounds);
      REQUIRE(second.Bring(false));
      CHECK(sched_getcpu() == 0);
      Loop(kRounds);
      set.Read(away);
      REQUIRE(second.Bring(true));
      SecondCpu::Allow(kLastCpu, kLastCpu);
      Loop(kRounds);
      set.Read(end);
      CheckLoops(set.Difference(begin, away, 0), 2, start);
      CheckLoops(set.Difference(begin, end, 0), 3, start);
      CheckLoops(set.Difference(begin, end, 1), 3, start, testing::CyclesPerInstruction());
      CHECK(set.Difference(begin, away, 0).validity.has(Validity::kMigrated));
    }
  }
}

// The kernel ends a CPU's events when that goes offline, and does not begin them again when it comes back.
TEST_CASE("the count of a CPU that was offline is none, not 0", "[cpus]") {
  NEED_HOTPLUG();
  for (const char* const event : {"instructions:u", "page-faults"}) {
    CAPTURE(event);
    for (const Target target : {Target::Cpu(kLastCpu), Target::System()}) {
      absl::StatusOr<CounterSet> set = CounterSet::Open({event}, target);
      INFO(set.status().ToString());
      REQUIRE(set.ok());
      SecondCpu::Allow(kLastCpu, kLastCpu);
      testing::FreshPages memory(100);
      Snapshot begin, before, after, later;
      set->Read(begin);
      Loop(kRounds);
      memory.Touch(0, memory.pages());
      set->Read(before);
      CHECK(set->Difference(begin, before, 0).value >= 100);
      REQUIRE(second.Bring(false));
      REQUIRE(second.Bring(true));
      SecondCpu::Allow(kLastCpu, kLastCpu);
      set->Read(after);
      Loop(kRounds);
      memory.Forget();
      memory.Touch(0, memory.pages());
      set->Read(later);
      CHECK_FALSE(set->Difference(begin, later, 0).validity.counted());
      CHECK_FALSE(set->Difference(after, later, 0).validity.counted());
      // A new one counts there.
      const absl::StatusOr<CounterSet> fresh = CounterSet::Open({event}, target);
      REQUIRE(fresh.ok());
      fresh->Read(begin);
      Loop(kRounds);
      memory.Forget();
      memory.Touch(0, memory.pages());
      fresh->Read(later);
      CHECK(fresh->Difference(begin, later, 0).value >= 100);
    }
  }
}

TEST_CASE("a thread is sampled on whatever CPU it is pushed to", "[cpus]") {
  NEED_HOTPLUG();
  const uint64_t period = 10'000 * testing::CyclesPerInstruction();
  for (const Target target : {Target::ThisThread(), Target::AllThreads()}) {
    SamplerOptions options;
    options.events = {{.event = "cycles:u", .rate = Period{period}}};
    options.fields = kSampleCpu;
    absl::StatusOr<Sampler> sampler = Sampler::Open(options, target);
    INFO(sampler.status().ToString());
    REQUIRE(sampler.ok());
    REQUIRE(sampler->Start().ok());
    SecondCpu::Allow(kLastCpu, kLastCpu);
    Loop(kRounds);
    REQUIRE(second.Bring(false));
    Loop(kRounds);
    REQUIRE(second.Bring(true));
    SecondCpu::Allow(kLastCpu, kLastCpu);
    Loop(kRounds);
    REQUIRE(sampler->Stop().ok());
    std::map<uint32_t, uint64_t> seen;
    testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) { ++seen[*sample.cpu()]; });
    const uint64_t loop = kInstructions * testing::CyclesPerInstruction() / period;
    CHECK(seen[0] >= loop - 2);
    CHECK(seen[kLastCpu] >= 2 * loop - 4);
    const EventAccounting accounting = sampler->stats().events[0];
    CHECK(accounting.lost == 0);
    CHECK(accounting.delivered == seen[0] + seen[kLastCpu]);
    CHECK(accounting.counted / period + 2 >= accounting.delivered);
    // What another CPU's work takes of this one's time comes in one piece, and so do its samples.
    CHECK(100 * accounting.delivered >= 95 * (accounting.counted / period));
  }
}

}  // namespace
}  // namespace perfkit
