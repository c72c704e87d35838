// What it costs to make and to write profiles: run it with --benchmark_enable_random_interleaving.
//
//   session_cases.cc   Session/*, Aggregate/1M, Start/100modules, Stop/100k
//   write_cases.cc     Write/<format>: a profile into each format that is linked
#include <benchmark/benchmark.h>

#include "bench/session/cases.h"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  bench::RegisterSessionCases();
  bench::RegisterWriteCases();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
