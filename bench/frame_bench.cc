// What a recorder that is always on costs the frames of a game. The names of the cases are a contract.
//
//   frame/game_cases.cc   Game/<rate>: the game of examples/game_loop without it, with a bare timer, and with it
//
//   --full   21 rounds of 200 frames; without it one round of 5
#include <benchmark/benchmark.h>

#include "bench/frame/cases.h"
#include "bench/support/full_run.h"

int main(int argc, char** argv) {
  bench::TakeFull(&argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  bench::RegisterGameCases();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
