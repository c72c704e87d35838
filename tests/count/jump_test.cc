// Reads that are interrupted by a signal handler, at any instruction of theirs. The handler reads, too, or leaves by a
// jump: what is read then and later is right.
#include <catch2/catch.hpp>

#include "tests/count/sets.h"
#include "tests/support/cpus.h"
#include "tests/support/measurement.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

#if defined(__x86_64__)
#include <setjmp.h>
#include <signal.h>
#include <x86intrin.h>

#include <algorithm>
#include <array>
#include <random>

namespace perfkit {
namespace {

constexpr uint64_t kTrapFlag = 0x100;

volatile int g_left = 0;  // instructions until the jump
sigjmp_buf g_out;

void JumpWhenDue() {
  g_left = g_left - 1;
  if (g_left == 0) siglongjmp(g_out, 1);
}

void (*g_at_each_instruction)() = JumpWhenDue;

void Trap(int) { g_at_each_instruction(); }

// All traps are ours as long as it lives.
class Stepping {
 public:
  explicit Stepping(void (*at_each_instruction)() = JumpWhenDue) {
    g_at_each_instruction = at_each_instruction;
    struct sigaction action {};
    action.sa_handler = Trap;
    sigaction(SIGTRAP, &action, &before_);
  }
  ~Stepping() { sigaction(SIGTRAP, &before_, nullptr); }

 private:
  struct sigaction before_;
};

// Reads; leaves after `instructions`, 0 for never. Returns false if the read was over before.
__attribute__((noinline)) bool ReadAndLeave(const CounterSet& set, int instructions, Snapshot& now) {
  g_left = instructions;
  if (sigsetjmp(g_out, 1) != 0) return true;
  if (instructions > 0) __writeeflags(__readeflags() | kTrapFlag);
  set.Read(now);
  __writeeflags(__readeflags() & ~kTrapFlag);
  return false;
}

TEST_CASE("a jump out of a read, wherever it was, makes no later number wrong", "[jump][measurement]") {
  const testing::TwoCpus cpus;
  if (!cpus.has_both()) SKIP_TEST("this takes two CPUs");
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer delays signals");
  CounterOptions options;
  options.user_only = true;
  const CounterSet set = MustOpen(std::array{EventSpec(event::kTaskClock), EventSpec(event::kCpuMigrations)}, options);
  const Stepping stepping;
  Snapshot begin, end, scratch;
  constexpr int kRounds = 40, kInstructions = 600;  // most of a read that renews the base
  std::minstd_rand random(static_cast<uint32_t>(testing::NowNs()));
  int jumps = 0;
  for (int round = 0; round < kRounds; ++round) {
    const int instructions = 1 + static_cast<int>(random() % kInstructions);
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
uint64_t g_handlers_base = 0;  // Its ticks.

void ReadWhenDue() {
  g_left = g_left - 1;
  if (g_left != 0) return;
  Snapshot now;
  g_read_set->Read(now);
  g_handlers_base = PlanReader::PlanOf(*g_read_set).base.ticks;
}

volatile int g_steps = 0;
volatile int g_written_at = 0;  // The first step at which the base was being written.

void NoteWhenWritten() {
  g_steps = g_steps + 1;
  if (g_written_at == 0 && (PlanReader::PlanOf(*g_read_set).base.version & 1) != 0) g_written_at = g_steps;
}

void StepOverRead(const CounterSet& set, Snapshot& now) {
  __writeeflags(__readeflags() | kTrapFlag);
  set.Read(now);
  __writeeflags(__readeflags() & ~kTrapFlag);
}

TEST_CASE("the base of a signal handler is not replaced by the older one of the read that it interrupts",
          "[jump][law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer delays signals");
  const CounterSet set = MustOpen(std::array{EventSpec(event::kTaskClock)}, Only(ReadPath::kThreadClock));
  g_read_set = &set;
  Snapshot now;
  {
    const Stepping stepping(NoteWhenWritten);
    g_steps = 0;
    g_written_at = 0;
    testing::SwitchAway();  // The read has to renew the base.
    StepOverRead(set, now);
  }
  REQUIRE(g_written_at > 0);
  const Stepping stepping(ReadWhenDue);
  constexpr int kBefore = 150, kAfter = 20;  // The instructions of a read vary a little.
  int interrupted = 0, older = 0;
  for (int at = std::max(1, static_cast<int>(g_written_at) - kBefore); at < g_written_at + kAfter; ++at) {
    testing::SwitchAway();
    g_handlers_base = 0;
    g_left = at;
    StepOverRead(set, now);
    interrupted += g_handlers_base != 0;
    older += PlanReader::PlanOf(set).base.ticks < g_handlers_base;
  }
  CHECK(interrupted > kAfter);
  CHECK(older == 0);
}

std::array<Snapshot, 512> g_reads;
size_t g_read_count = 0;

void ReadWhileWritten() {
  const bool is_written = (PlanReader::PlanOf(*g_read_set).base.version & 1) != 0;
  if (is_written && g_read_count < g_reads.size()) g_read_set->Read(g_reads[g_read_count++]);
}

TEST_CASE("a read while a base is written counts no migrations over a gap", "[jump][law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer delays signals");
  CounterOptions options;
  options.user_only = true;
  const CounterSet set = MustOpen(std::array{EventSpec(event::kCpuMigrations), EventSpec(event::kTaskClock)}, options);
  g_read_set = &set;
  g_read_count = 0;
  const Stepping stepping(ReadWhileWritten);
  Snapshot begin, end;
  set.Read(begin);
  constexpr int kMoreThanTheRingHolds = 1100;
  for (int i = 0; i < kMoreThanTheRingHolds; ++i) testing::SwitchAway();
  StepOverRead(set, end);
  CHECK_FALSE(set.Difference(begin, end, 0).validity.counted());
  CHECK(g_read_count > 0);
  size_t counted = 0;
  for (size_t i = 0; i < g_read_count; ++i) counted += set.Difference(begin, g_reads[i], 0).validity.counted();
  CHECK(counted == 0);
}

}  // namespace
}  // namespace perfkit
#endif
