// What it costs to make and to write profiles. The names of the cases are a contract.
//
//   pair_cases.cc      Session/<work>/<rate>: an always-on session, to the same work without it
//   session_cases.cc   Aggregate/1M, Start/100modules, Stop/100k
//   stall_cases.cc     Snapshot/*: the sampled thread at a snapshot; Look/blocked
//   tree_cases.cc      Tree/*: a profile into a call tree
//   write_cases.cc     Write/<format>: a profile into each format that is linked
//
//   --full   21 pairs of work, and trees of 1,000,000 samples; without it one pair, and 50,000 samples
#include <benchmark/benchmark.h>

#include <string_view>

#include "bench/session/cases.h"

namespace {

// Takes our own option out of the list.
void TakeFull(int* argc, char** argv) {
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    if (std::string_view(argv[i]) == "--full") {
      bench::full_run = true;
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
}

}  // namespace

int main(int argc, char** argv) {
  TakeFull(&argc, argv);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  bench::RegisterSessionCases();
  bench::RegisterWriteCases();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
