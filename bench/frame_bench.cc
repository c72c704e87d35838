// What a recorder that is always on costs the frames of a game. The names of the cases are a contract.
//
//   frame/game_cases.cc   Game/<rate>: the game of examples/game_loop without it, with a bare timer, and with it
//
//   --full   21 rounds of 200 frames; without it one round of 5
#include <benchmark/benchmark.h>

#include <string_view>

#include "bench/frame/cases.h"

int main(int argc, char** argv) {
  bool is_full = false;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--full") {
      is_full = true;
    } else {
      argv[kept++] = argv[i];
    }
  }
  benchmark::Initialize(&kept, argv);
  if (benchmark::ReportUnrecognizedArguments(kept, argv)) return 2;
  bench::RegisterGameCases(is_full);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
