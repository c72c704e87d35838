// Frames and zones of a FrameCounter, each with its histograms filled.
#include <perfkit/frame_counter.h>

#include "bench/support/events.h"
#include "bench/support/raw_perf.h"

namespace bench {
namespace {

constexpr auto kByKernel = perfkit::ReadPath::kGroupRead;

// False, and the case has failed, when an event has no number.
bool AllCounted(benchmark::State& state, const perfkit::FrameCounter& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (frames.reason(i).empty()) continue;
    state.SkipWithError(std::string(frames.reason(i)).c_str());
    return false;
  }
  return true;
}

void RawFrame(benchmark::State& state) {
  const RawGroup group;
  if (!group.error().empty()) return state.SkipWithError(group.error().c_str());
  RawGroup::Words words;
  for (auto _ : state) {
    benchmark::DoNotOptimize(group.Read(words));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(RawFrame)->Name("Frame/raw_read");

void PerfkitMark(benchmark::State& state, std::optional<perfkit::ReadPath> path) {
  perfkit::FrameCounter frames({.events = Four(), .only_path = path});
  if (!AllCounted(state, frames)) return;
  for (auto _ : state) frames.Mark();
}
BENCHMARK_CAPTURE(PerfkitMark, group, kByKernel)->Name("Frame/perfkit_mark");
BENCHMARK_CAPTURE(PerfkitMark, fast, std::nullopt)->Name("Frame/perfkit_mark_fast");

void PerfkitZone(benchmark::State& state, std::optional<perfkit::ReadPath> path, bool enabled) {
  perfkit::FrameCounter frames({.events = Four(), .only_path = path});
  if (!AllCounted(state, frames)) return;
  frames.SetEnabled(enabled);
  frames.Mark();
  for (auto _ : state) {
    PERFKIT_ZONE(frames, "zone");
    benchmark::ClobberMemory();
  }
}
BENCHMARK_CAPTURE(PerfkitZone, group, kByKernel, true)->Name("Zone/pair");
BENCHMARK_CAPTURE(PerfkitZone, fast, std::nullopt, true)->Name("Zone/pair_fast");
BENCHMARK_CAPTURE(PerfkitZone, off, std::nullopt, false)->Name("Zone/off");

}  // namespace
}  // namespace bench
