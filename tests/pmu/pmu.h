// What tests of hardware counters share: whether there are any, and work of a known number of instructions.
//
// The same tests run on any machine that has a PMU, and in the emulated one (tests/machine), where a test must not skip
// and counts are exact. That one is told by the variable PERFKIT_CYCLES_PER_INSTRUCTION, which it sets.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include "perfkit/counter.h"
#include "tests/count/sets.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::testing {

// "" when hardware events count here, else why not.
inline std::string WhyNoPmu() {
  const absl::StatusOr<CounterSet> set = CounterSet::Open({"instructions:u"});
  return set.ok() ? "" : std::string(set.status().message());
}

// "" when this thread's counters can be read in user space, else why not: arm64 can since Linux 5.17.
inline std::string WhyNoUserReads(const EventSpec& event = "instructions:u") {
  const auto set = CounterSet::Open({event}, Target::ThisThread(), Only(ReadPath::kUserPage));
  return set.ok() ? "" : std::string(set.status().message());
}

// How many cycles an instruction takes in the emulated machine; 0: not there, and nothing is exact.
inline uint64_t CyclesPerInstruction() {
  const char* const text = getenv("PERFKIT_CYCLES_PER_INSTRUCTION");
  return text == nullptr ? 0 : strtoull(text, nullptr, 10);
}

// Whether the machine's clock had time for a count since `start_ns`. Where it has several CPUs, QEMU counts to each
// what the others do meanwhile: no more than this can be said of every count.
inline bool ClockAllows(uint64_t count, uint64_t start_ns, uint64_t per_instruction = 1) {
  return count * CyclesPerInstruction() / per_instruction <= NowNs() - start_ns;
}

#define NEED_PMU() \
  if (const std::string why = ::perfkit::testing::WhyNoPmu(); !why.empty()) SKIP_TEST(why)
#define NEED_EXACT_PMU() \
  NEED_PMU();            \
  if (::perfkit::testing::CyclesPerInstruction() == 0) SKIP_TEST("only an emulated PMU is exact")
// For whatever machine it is.
#define NEED_REGISTERS() \
  NEED_PMU();            \
  if (const std::string why = ::perfkit::testing::WhyNoUserReads(); !why.empty()) SKIP_TEST(why)
#define NEED_USER_READS() \
  NEED_EXACT_PMU();       \
  if (const std::string why = ::perfkit::testing::WhyNoUserReads(); !why.empty()) SKIP_TEST(why)

// `rounds` times two instructions, whatever the compiler does. At least 1.
__attribute__((noinline)) inline void Loop(uint64_t rounds) {
#if defined(__aarch64__)
  asm volatile("1: subs %0, %0, #1\n b.ne 1b" : "+r"(rounds) : : "cc");
#elif defined(__x86_64__)
  asm volatile("1: dec %0\n jnz 1b" : "+r"(rounds) : : "cc");
#else
  while (rounds-- != 0) asm volatile("");
#endif
}
inline constexpr uint64_t kLoopInstructions = 2;

}  // namespace perfkit::testing
