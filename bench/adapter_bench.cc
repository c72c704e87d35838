// The cost of `perfkit::counted` for an iteration of a benchmark's loop: the same body in Google Benchmark's own loop
// and in perfkit's.
//
//   Loop/bare     for (auto _ : state)
//   Loop/counted  for (auto _ : perfkit::counted(state, four software events))
//
// The cases of perfkit::testing are in adapter/.
// Run it with --benchmark_enable_random_interleaving, as check_bars does. The names are a contract.
#include "perfkit/benchmark.h"

namespace {

// Eight multiplications, about 2 ns: long enough that the alignment of the loop around them does not matter, short enough
// that a call or a store in each iteration would show. Without a loop of their own, whose alignment would: 1.16 times the
// time was measured.
void Body() {
  uint64_t x = 1;
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    x *= 6364136223846793005u;
    asm volatile("" : "+r"(x));
  }
}

void Bare(benchmark::State& state) {
  for (auto _ : state) Body();
}
BENCHMARK(Bare)->Name("Loop/bare");

void Counted(benchmark::State& state) {
  for (auto _ : perfkit::counted(state, {"task-clock", "page-faults", "context-switches", "cpu-migrations"})) Body();
}
BENCHMARK(Counted)->Name("Loop/counted");

}  // namespace

PERFKIT_BENCHMARK_MAIN();
