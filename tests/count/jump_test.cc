// Reads that are interrupted by a signal handler, at any instruction of theirs. The handler reads, too, or leaves by a
// jump: what is read then and later is right.
#include <errno.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <random>

#include "tests/count/sets.h"
#include "tests/support/cpus.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/measurement.h"
#include "tests/support/single_step.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::SingleSteps;

// Reads; leaves after `instructions`, unless 0. Returns false if the read was over before.
__attribute__((noinline)) bool ReadAndLeave(const CounterSet& set, uint32_t instructions, Snapshot& now) {
  return testing::LeaveAt(instructions, [&] { set.Read(now); });
}

TEST_CASE("a jump out of a read, wherever it was, makes no later number wrong", "[jump][measurement]") {
  const testing::TwoCpus cpus;
  if (!cpus.has_both()) SKIP_TEST("this takes two CPUs");
  if (!testing::kHasSingleSteps) SKIP_TEST(testing::kNoSingleSteps);
  CounterOptions options;
  options.user_only = true;
  const CounterSet set = MustOpen(std::array{EventSpec(event::kTaskClock), EventSpec(event::kCpuMigrations)}, options);
  Snapshot begin, end, scratch;
  constexpr int kRounds = 40;
  constexpr uint32_t kInstructions = 600;  // most of a read that renews the base
  std::minstd_rand random(static_cast<uint32_t>(testing::NowNs()));
  int jumps = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto instructions = static_cast<uint32_t>(1 + random() % kInstructions);
    CAPTURE(round, instructions);
    // What a hypervisor takes in the middle of a read belongs to neither clock.
    REQUIRE(testing::HoldsOnceInThree([&] {
      cpus.MoveTo(round % 2);
      const uint64_t begun = testing::NowNs();
      set.Read(begin);
      cpus.MoveTo((round + 1) % 2);
      jumps += ReadAndLeave(set, instructions, scratch) ? 1 : 0;
      set.Read(end);
      const uint64_t wall = testing::NowNs() - begun;
      const Count migrations = set.Difference(begin, end, 1), clock = set.Difference(begin, end, 0);
      REQUIRE(migrations.validity.counted());
      REQUIRE(migrations.value == 1);
      REQUIRE(clock.value > 0);
      // The stack address of the read that was left is free again.
      ReadAndLeave(set, 0, scratch);
      return clock.value <= wall + wall / 100 + 100'000;
    }));
  }
  CHECK(jumps > 0);
  set.Read(begin);
  set.Read(end);
  CHECK_FALSE(set.Difference(begin, end, 0).validity.has(Validity::kFallback));
}

struct PlanReader : CounterReader {
  static const detail::ReadPlan& PlanOf(const CounterReader& reader) { return *(reader.*(&PlanReader::plan_)); }
};

const CounterSet* g_read_set = nullptr;
volatile int g_steps = 0;
volatile int g_written_at = 0;  // The first step at which the base was being written.

bool NoteWhenWritten() {
  g_steps = g_steps + 1;
  if (g_written_at == 0 && (PlanReader::PlanOf(*g_read_set).base.version & 1) != 0) g_written_at = g_steps;
  return true;
}

TEST_CASE("the base of a signal handler is not replaced by the older one of the read that it interrupts",
          "[jump][law]") {
  if (!testing::kHasSingleSteps) SKIP_TEST(testing::kNoSingleSteps);
  const CounterSet set = MustOpen(std::array{EventSpec(event::kTaskClock)}, Only(ReadPath::kThreadClock));
  g_read_set = &set;
  Snapshot now;
  {
    const SingleSteps steps(NoteWhenWritten);
    g_steps = 0;
    g_written_at = 0;
    testing::SwitchAway();  // The read has to renew the base.
    SingleSteps::Over([&] { set.Read(now); });
  }
  REQUIRE(g_written_at > 0);
  constexpr int kBefore = 150, kAfter = 20;  // The instructions of a read vary a little.
  int interrupted = 0, older = 0;
  for (int at = std::max(1, static_cast<int>(g_written_at) - kBefore); at < g_written_at + kAfter; ++at) {
    testing::SwitchAway();
    uint64_t handlers_base = 0;  // Its ticks.
    const auto read_too = [&] {
      Snapshot in_handler;
      set.Read(in_handler);
      handlers_base = PlanReader::PlanOf(set).base.ticks;
    };
    testing::InterruptAt(static_cast<uint32_t>(at), read_too, [&] { set.Read(now); });
    interrupted += handlers_base != 0;
    older += PlanReader::PlanOf(set).base.ticks < handlers_base;
  }
  CHECK(interrupted > kAfter);
  CHECK(older == 0);
}

TEST_CASE("no two reads without a page have one epoch, one in a signal handler of the other", "[jump][law]") {
  if (!testing::kHasSingleSteps) SKIP_TEST(testing::kNoSingleSteps);
  const auto set = CounterSet::Open({event::kPageFaults}, Target::Thread(gettid()), Only(ReadPath::kGroupRead));
  REQUIRE(set.ok());
  constexpr uint32_t kMost = 400;  // More than there are before and after the group's read.
  std::array<Snapshot, 4> reads;
  uint32_t at = 1, equal = 0;
  for (bool interrupted = true; at <= kMost && interrupted; ++at) {
    interrupted = false;
    const auto read_twice = [&] {
      set->Read(reads[0]);
      set->Read(reads[1]);
      interrupted = true;
    };
    testing::InterruptAt(at, read_twice, [&] { set->Read(reads[2]); });
    set->Read(reads[3]);
    if (!interrupted) break;
    for (size_t i = 0; i < reads.size(); ++i) {
      for (size_t other = 0; other < i; ++other) equal += reads[i].epoch == reads[other].epoch;
    }
  }
  CHECK(at > 20);
  CHECK(equal == 0);
}

TEST_CASE("a read without a base counts no migrations over a gap that a signal handler finds meanwhile",
          "[jump][law]") {
  if (!testing::kHasSingleSteps) SKIP_TEST(testing::kNoSingleSteps);
  testing::FakeKernel fake;
  CounterOptions options;
  options.user_only = true;
  const CounterSet set = MustOpen(std::array{EventSpec(event::kCpuMigrations), EventSpec(event::kTaskClock)}, options);
  constexpr int kMoreThanTheRingHolds = 1100;
  constexpr uint32_t kMost = 3000, kStride = testing::kSanitized ? 41 : 7;
  Snapshot begin, end;
  uint32_t at = 1, counted = 0;
  for (bool interrupted = true; at < kMost && interrupted; at += kStride) {
    set.Read(begin);
    for (int i = 0; i < kMoreThanTheRingHolds; ++i) testing::SwitchAway();
    fake.FailNth(1, EIO, testing::Call::kRead);  // There is no base if the clock can't be read.
    interrupted = false;
    const auto read_too = [&] {
      Snapshot in_handler;
      set.Read(in_handler);
      interrupted = true;
    };
    testing::InterruptAt(at, read_too, [&] { set.Read(end); });
    fake.Forgive();
    counted += set.Difference(begin, end, 0).validity.counted();
  }
  CHECK(at > 100);
  CHECK(counted == 0);
}

std::array<Snapshot, 512> g_reads;
size_t g_read_count = 0;

bool ReadWhileWritten() {
  const bool is_written = (PlanReader::PlanOf(*g_read_set).base.version & 1) != 0;
  if (is_written && g_read_count < g_reads.size()) g_read_set->Read(g_reads[g_read_count++]);
  return true;
}

TEST_CASE("a read while a base is written counts no migrations over a gap", "[jump][law]") {
  if (!testing::kHasSingleSteps) SKIP_TEST(testing::kNoSingleSteps);
  CounterOptions options;
  options.user_only = true;
  const CounterSet set = MustOpen(std::array{EventSpec(event::kCpuMigrations), EventSpec(event::kTaskClock)}, options);
  g_read_set = &set;
  g_read_count = 0;
  const SingleSteps steps(ReadWhileWritten);
  Snapshot begin, end;
  set.Read(begin);
  constexpr int kMoreThanTheRingHolds = 1100;
  for (int i = 0; i < kMoreThanTheRingHolds; ++i) testing::SwitchAway();
  SingleSteps::Over([&] { set.Read(end); });
  CHECK_FALSE(set.Difference(begin, end, 0).validity.counted());
  CHECK(g_read_count > 0);
  size_t counted = 0;
  for (size_t i = 0; i < g_read_count; ++i) counted += set.Difference(begin, g_reads[i], 0).validity.counted();
  CHECK(counted == 0);
}

}  // namespace
}  // namespace perfkit
