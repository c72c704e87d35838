// Counters in Google Benchmark's own table, by one edit of each loop. See docs/benchmark.md.
#include "perfkit/benchmark.h"

#include <vector>

namespace {

void Grow(benchmark::State& state) {
  for (auto _ : perfkit::counted(state)) {
    std::vector<char> bytes(64 << 20);  // does malloc give fresh pages each time?
    benchmark::DoNotOptimize(bytes.data());
  }
}
BENCHMARK(Grow);

void Reuse(benchmark::State& state) {
  std::vector<char> bytes(8 << 20);
  for (auto _ : perfkit::counted(state, {"page-faults", "context-switches", perfkit::event::kInstructions})) {
    bytes.assign(bytes.size(), 1);
    benchmark::DoNotOptimize(bytes.data());
  }
}
BENCHMARK(Reuse);

}  // namespace

PERFKIT_BENCHMARK_MAIN();
