// What it costs to name code, with elfutils' ways beside ours in one process: run it with
// --benchmark_enable_random_interleaving. The names of the cases are a contract; check_bars holds them to their bars.
//
//   name_cases.cc   functions by symbol tables      line_cases.cc   source lines and inlined calls
//
// Code of this process is asked for: names in the library with the most symbols that is here, lines in this very
// program.
#include <benchmark/benchmark.h>

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
