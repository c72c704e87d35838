// What it costs to unwind stacks of real programs, with elfutils' libdwfl and libunwind beside ours in one process: run
// it with --benchmark_enable_random_interleaving. The names of the cases are a contract; check_bars holds them to their
// bars.
//
//   unwind_capture ──records──> capture_file ──samples──> contenders (perfkit, dwfl, libunwind/) ──> cases
//
// Captures lie in a folder beside this program; without them no case is measured, and all say so.
#include <benchmark/benchmark.h>

#include "bench/unwind/cases.h"

int main(int argc, char** argv) {
  bench::RegisterUnwindCases();
  bench::RegisterStitchCases();
  bench::RegisterFrozenCases();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
