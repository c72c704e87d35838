// The time that an assertion on cost takes: with counters, compared with the region that it measures; by the stepper,
// compared with the minimum cost of a trap after each instruction.
//
//   Assert/region        1,000 multiplications, one after the other: about a microsecond
//   Assert/counters      Measure and judge that region's page faults
//   Step/empty_handler   20,000 instructions under the trap flag, with a handler that does nothing
//   Step/measured        Measure the same instructions by the stepper, with all its overhead
#include <benchmark/benchmark.h>
#include <signal.h>

#include "perfkit/testing.h"

namespace {

using namespace perfkit::event;

uint64_t Region() {
  uint64_t x = 1;
  for (int i = 0; i < 1000; ++i) {
    x *= 6364136223846793005u;
    asm volatile("" : "+r"(x));
  }
  return x;
}

void RegionAlone(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(Region());
}
BENCHMARK(RegionAlone)->Name("Assert/region");

void AssertByCounters(benchmark::State& state) {
  for (auto _ : state) {
    const auto m = perfkit::Measure({kPageFaults}, Region);
    const perfkit::Verdict verdict = perfkit::JudgeCosts(m, 0, kPageFaults);
    if (verdict.outcome != perfkit::Outcome::kPass) state.SkipWithError(verdict.why.c_str());
  }
}
BENCHMARK(AssertByCounters)->Name("Assert/counters");

#if defined(__x86_64__)

void TwentyThousand() { asm volatile("mov $10000, %%ecx\n 1: dec %%ecx\n jnz 1b" ::: "ecx", "cc"); }

void EmptyHandler(benchmark::State& state) {
  constexpr uint64_t kTrapFlag = 0x100;  // EFLAGS.TF (Intel SDM vol. 1, 3.4.3)
  struct sigaction empty {
  }, before{};
  empty.sa_handler = [](int) {};
  sigaction(SIGTRAP, &empty, &before);
  for (auto _ : state) {
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | kTrapFlag);
    TwentyThousand();
    __builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~kTrapFlag);
  }
  sigaction(SIGTRAP, &before, nullptr);
}

void Stepped(benchmark::State& state) {
  for (auto _ : state) {
    const auto m = perfkit::Measure({kInstructions}, TwentyThousand, {.only = perfkit::MeasureBackend::kStepper});
    if (!m.costs[0].measured()) state.SkipWithError(m.costs[0].unmeasurable.c_str());
  }
}

#else

void EmptyHandler(benchmark::State& state) { state.SkipWithError("the CPU has no trap flag for users"); }
void Stepped(benchmark::State& state) { EmptyHandler(state); }

#endif

BENCHMARK(EmptyHandler)->Name("Step/empty_handler");
BENCHMARK(Stepped)->Name("Step/measured");

}  // namespace
