// What it costs to make and to write profiles. The names of the cases are a contract.
//
//   pair_cases.cc      Session/<work>/<rate>: an always-on session, to the same work without it
//   session_cases.cc   Aggregate/1M, Start/100modules, Stop/100k
//   stall_cases.cc     Snapshot/*: the sampled thread at a snapshot; Look/blocked
//   tree_cases.cc      Tree/*: a profile into a call tree
//   write_cases.cc     Write/<format>: a profile into each format that is linked
//
//   --full   21 pairs of work, and trees of 1,000,000 samples; without it one short pair, and 50,000 samples
#include <benchmark/benchmark.h>

#include "bench/session/cases.h"
#include "bench/support/full_run.h"

int main(int argc, char** argv) {
  bench::TakeFull(&argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  bench::RegisterSessionCases();
  bench::RegisterWriteCases();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
