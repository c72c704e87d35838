// What a sampler costs those who run it. The names of the cases are a contract.
//
//   gate_cases.cc         pausing and resuming, to one getppid; taking a snapshot
//   throughput_cases.cc   the reader's CPU time for each record, from the kernel to the visitor
#include <benchmark/benchmark.h>

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
