// What it costs to read rings, in one process: run it with --benchmark_enable_random_interleaving. The names of the
// cases are a contract; check_bars holds them to their bars.
//
//   decode_cases.cc   records of one ring, by four ways of reading them
//   merge_cases.cc    many rings in the order of time
//
// The rings lie in ordinary memory, are full, and stay as they are: only the positions move, by a ring's size each time,
// so that each batch reads the same bytes. All numbers are of one record.
#include <benchmark/benchmark.h>

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
