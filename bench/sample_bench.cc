// What a sampler costs those who run it. The names of the cases are a contract.
//
//   gate_cases.cc         pausing and resuming, to one getppid; taking a snapshot
//   live_cases.cc         what the sampled thread pays for a sample, by the kind of its stack
//   throughput_cases.cc   the reader's CPU time for each record, from the kernel to the visitor
//
//   --throughput_seconds=60   how long these run; 0.3 without it
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string_view>

#include "bench/sample/source.h"

namespace {

// Takes our own option out of the list.
void TakeSeconds(int* argc, char** argv) {
  constexpr std::string_view kOption = "--throughput_seconds=";
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    if (!std::string_view(argv[i]).starts_with(kOption)) {
      argv[kept++] = argv[i];
    } else if (const double seconds = std::atof(argv[i] + kOption.size()); seconds > 0) {
      bench::throughput_seconds = seconds;
    }
  }
  *argc = kept;
}

}  // namespace

int main(int argc, char** argv) {
  TakeSeconds(&argc, argv);
  bench::MountTracefs();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
