// Hardware counters of whatever machine this is: what holds on real ones as well as on the emulated one.
//
// Real machines have other tenants, interrupts that some CPUs count, and clocks that change: hence the tolerances.
// Where the machine is emulated there are none.
#include <catch2/catch.hpp>
#include <set>
#include <vector>

#include "perfkit/sampler.h"
#include "tests/pmu/pages.h"
#include "tests/sample/support.h"

namespace perfkit {
namespace {

using testing::kLoopInstructions;
using testing::Loop;

bool IsEmulated() { return testing::CyclesPerInstruction() != 0; }

// Out of order, a CPU may read a register before the work in front of it has retired: as much as it has under way.
uint64_t UnderWay() { return IsEmulated() ? 0 : 1000; }

// What `count` says of `truth`: more by little, or if others had the counter meanwhile, an estimate.
void CheckCounted(const Count& count, uint64_t truth) {
  INFO(count.value << " of " << truth << ", coverage " << count.coverage());
  REQUIRE(count.validity.counted());
  REQUIRE(count.scaled().has_value());
  const auto value = static_cast<double>(*count.scaled()), expected = static_cast<double>(truth);
  if (count.coverage() == 1) {
    CHECK(value + static_cast<double>(UnderWay()) >= expected);
    CHECK(value <= expected * 1.005 + 2000);
  } else {
    CHECK(value == Approx(expected).epsilon(0.25));
  }
}

Count Counted(const CounterSet& set, size_t event, uint64_t rounds, void (*work)(uint64_t)) {
  Snapshot begin, end;
  set.Read(begin);
  work(rounds);
  set.Read(end);
  return set.Difference(begin, end, event);
}

TEST_CASE("a loop's instructions are counted, by read and by register", "[exact][live]") {
  NEED_PMU();
  for (const ReadPath path : {ReadPath::kGroupRead, ReadPath::kUserPage}) {
    CAPTURE(ReadPathName(path));
    if (path == ReadPath::kUserPage) NEED_REGISTERS();
    const CounterSet set = MustOpen(std::array{EventSpec("instructions:u")}, Only(path));
    REQUIRE(set.path(0) == path);
    for (const uint64_t rounds : {1'000, 1'000'000, 5'000'000}) {
      CheckCounted(Counted(set, 0, rounds, Loop), rounds * kLoopInstructions);
    }
  }
}

// Each multiplication waits for the one before, which takes every CPU 3 cycles or more.
__attribute__((noinline)) void SlowLoop(uint64_t rounds) {
  [[maybe_unused]] uint64_t product = rounds | 1;
#if defined(__aarch64__)
  asm volatile("1: mul %1, %1, %1\n mul %1, %1, %1\n mul %1, %1, %1\n mul %1, %1, %1\n subs %0, %0, #1\n b.ne 1b"
               : "+r"(rounds), "+r"(product)
               :
               : "cc");
#elif defined(__x86_64__)
  asm volatile("1: imul %1, %1\n imul %1, %1\n imul %1, %1\n imul %1, %1\n dec %0\n jnz 1b"
               : "+r"(rounds), "+r"(product)
               :
               : "cc");
#endif
}
constexpr uint64_t kSlowInstructions = 6, kSlowCycles = 12;

TEST_CASE("cycles and instructions are told apart on any machine", "[exact][live]") {
  NEED_PMU();
#if defined(__aarch64__) || defined(__x86_64__)
  constexpr uint64_t kRounds = 1'000'000;
  const CounterSet set = MustOpen(std::array{EventSpec("cycles:u"), EventSpec("instructions:u")});
  CheckCounted(Counted(set, 1, kRounds, SlowLoop), kRounds * kSlowInstructions);
  const Count cycles = Counted(set, 0, kRounds, SlowLoop);
  REQUIRE(cycles.scaled().has_value());
  CHECK(static_cast<double>(*cycles.scaled()) > 0.9 * static_cast<double>(kRounds * kSlowCycles));
#else
  SKIP_TEST("no loop of known slowness is written for this architecture");
#endif
}

TEST_CASE("registers and read(2) agree on any machine", "[exact][live]") {
  NEED_REGISTERS();
  for (const char* const event : {"instructions:u", "cycles:u"}) {
    CAPTURE(event);
    constexpr int kTimes = 20'000;
    const open::LiveRing ring = testing::OpenPage(event, testing::kReadable);
    CHECK(ring.page()->pmc_width >= 32);
    CHECK(ring.page()->pmc_width <= 64);
    printf("%s: index %#x, %d bits\n", event, ring.page()->index, ring.page()->pmc_width);
    const testing::Disagreements found = testing::Compare(ring, kTimes, 10, UnderWay());
    CHECK(found.wrong == 0);
    CHECK(found.unreadable <= (IsEmulated() ? 0 : kTimes / 2));  // others may want the counter, too
  }
}

// Each was opened later than the one before, so that no two registers hold the same number.
TEST_CASE("each counter is read from its own register", "[exact][live]") {
  NEED_REGISTERS();
  const size_t counters = IsEmulated() ? 6 : 4;  // beside that of cycles
  std::vector<open::LiveRing> rings;
  rings.push_back(testing::OpenPage("cycles:u", testing::kReadable));
  for (size_t i = 0; i < counters; ++i) {
    Loop(10'000);
    rings.push_back(testing::OpenPage("instructions:u", testing::kReadable));
  }
  std::set<uint32_t> indexes;
  for (const open::LiveRing& ring : rings) {
    const uint32_t index = ring.page()->index;
    CAPTURE(index);
    if (IsEmulated()) CHECK(indexes.insert(index).second);
    const testing::Disagreements found = testing::Compare(ring, 100, 10, UnderWay());
    CHECK(found.wrong == 0);
    if (IsEmulated()) CHECK(found.unreadable == 0);
  }
}

TEST_CASE("sixteen events share what counters there are, and each is scaled to the truth", "[exact][live]") {
  NEED_PMU();
  constexpr size_t kEvents = 16;
  const CounterSet set = MustOpen(std::vector<EventSpec>(kEvents, "instructions:u"), Only(ReadPath::kGroupRead));
  // As long as it takes for each to have had several turns of the 4 ms that the kernel gives it.
  constexpr double kNs = 300e6;
  constexpr uint64_t kSlice = 100'000;
  Snapshot begin, end;
  uint64_t rounds = 0;
  Loop(kSlice);
  set.Read(begin);
  do {
    Loop(kSlice);
    rounds += kSlice;
    set.Read(end);
  } while (static_cast<double>(set.Difference(begin, end, 0).time_enabled_ns) < kNs);
  size_t shared = 0;
  for (size_t i = 0; i < kEvents; ++i) {
    const Count count = set.Difference(begin, end, i);
    CAPTURE(i);
    CheckCounted(count, rounds * kLoopInstructions);
    shared += count.validity.has(Validity::kMultiplexed) ? 1 : 0;
  }
  if (IsEmulated()) CHECK(shared == kEvents);
}

TEST_CASE("instructions are sampled one each period", "[exact][live]") {
  NEED_PMU();
  constexpr uint64_t kPeriod = 500'000, kRounds = 20'000'000;
  SamplerOptions options;
  options.events = {{.event = "instructions:u", .rate = Period{kPeriod}}};
  absl::StatusOr<Sampler> sampler = Sampler::Open(options);
  INFO(sampler.status().ToString());
  REQUIRE(sampler.ok());
  REQUIRE(sampler->Start().ok());
  Loop(kRounds);
  REQUIRE(sampler->Stop().ok());
  uint64_t samples = 0, in_loop = 0;
  const auto loop = reinterpret_cast<uint64_t>(&Loop);
  testing::ForEachSample(*sampler, [&](const Sample& sample, const SamplerRecord&) {
    ++samples;
    in_loop += *sample.ip() >= loop && *sample.ip() < loop + 32 ? 1 : 0;
  });
  constexpr auto kExpected = static_cast<double>(kRounds * kLoopInstructions / kPeriod);
  CHECK(static_cast<double>(samples) == Approx(kExpected).epsilon(0.25));
  CHECK(static_cast<double>(in_loop) > 0.9 * static_cast<double>(samples));
}

}  // namespace
}  // namespace perfkit
