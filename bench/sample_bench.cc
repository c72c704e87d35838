// What a sampler costs those who run it. The names of the cases are a contract.
//
//   gate_cases.cc         pausing and resuming, to one getppid; taking a snapshot
//   live_cases.cc         what the sampled thread pays for a sample, by the kind of its stack
//   throughput_cases.cc   the reader's CPU time for each record, from the kernel to the visitor
//
//   --full   110 rounds of each work, 60 s of throughput; without it 5, and 0.3 s
#include <benchmark/benchmark.h>

#include "bench/sample/source.h"
#include "bench/support/full_run.h"

int main(int argc, char** argv) {
  bench::TakeFull(&argc, argv);
  bench::MountTracefs();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
