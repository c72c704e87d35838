// Tree/<kind>: a profile of 1,000,000 samples with 100,000 distinct stacks, on 8 threads, into a call tree. (Without
// --full a twentieth of that.)
#include <benchmark/benchmark.h>
#include <perfkit/profile_builder.h>
#include <perfkit/report.h>

#include <random>
#include <string>
#include <vector>

#include "bench/support/full_run.h"

namespace bench {
namespace {

// Stacks of 10 to 40 calls of 2,000 functions. Each stack shares the outer part of the one before it.
perfkit::Profile MakeWideProfile() {
  constexpr uint32_t kThreads = 8, kFunctions = 2'000;
  const uint32_t samples = full_run ? 1'000'000 : 50'000, stacks = samples / 10;
  std::mt19937_64 random(1);
  perfkit::ProfileBuilder builder;
  const auto event =
      static_cast<uint16_t>(builder.AddEvent({.name = "cpu-clock", .unit = perfkit::ProfileUnit::kNanoseconds}));
  for (uint32_t i = 0; i < kThreads; ++i) builder.AddThread(1, 1 + i, "worker " + std::to_string(i));
  std::vector<uint32_t> locations, path, leaves;
  for (uint32_t i = 0; i < kFunctions; ++i) locations.push_back(builder.Function("F" + std::to_string(i), "program"));
  while (leaves.size() < stacks) {
    path.resize(path.empty() ? 0 : random() % path.size());
    const size_t depth = 10 + random() % 31;
    while (path.size() < depth) {
      const uint32_t parent = path.empty() ? perfkit::ProfileStack::kRoot : path.back();
      path.push_back(builder.Stack(parent, locations[random() % kFunctions]));
    }
    leaves.push_back(path.back());
  }
  for (uint32_t i = 0; i < samples; ++i) {
    builder.AddSample({.time_ns = i + 1,
                       .weight = 1'000'000,
                       .thread = i % kThreads,
                       .stack = leaves[random() % stacks],
                       .event = event,
                       .quality = perfkit::StackQuality::kWhole});
  }
  return builder.Take();
}

void Tree(benchmark::State& state, const perfkit::CallTreeOptions& options) {
  static const perfkit::Profile profile = MakeWideProfile();
  size_t nodes = 0;
  for (auto _ : state) nodes = perfkit::CallTree(profile, options).nodes().size();
  state.counters["nodes"] = static_cast<double>(nodes);
}

BENCHMARK_CAPTURE(Tree, merged, perfkit::CallTreeOptions{})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Tree, by_thread, perfkit::CallTreeOptions{.by_thread = true})->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(Tree, bottom_up, perfkit::CallTreeOptions{.bottom_up = true})->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace bench
