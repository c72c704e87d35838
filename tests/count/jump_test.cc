// Reads that are left by a jump out of a signal handler, at any instruction of theirs: the reads after it are right.
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

#include <array>
#include <random>

namespace perfkit {
namespace {

constexpr uint64_t kTrapFlag = 0x100;

volatile int g_left = 0;  // instructions until the jump
sigjmp_buf g_out;

void Trap(int) {
  g_left = g_left - 1;
  if (g_left == 0) siglongjmp(g_out, 1);
}

// All traps are ours as long as it lives.
class Stepping {
 public:
  Stepping() {
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

}  // namespace
}  // namespace perfkit
#endif
