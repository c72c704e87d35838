// Frames and zones of a FrameCounter with filled histograms.
#include <perfkit/frame_counter.h>
#include <perfkit/metric.h>
#include <perfkit/tracy.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/events.h"
#include "bench/support/raw_perf.h"

namespace bench {
namespace {

constexpr auto kByKernel = perfkit::ReadPath::kGroupRead;

// Returns false, and fails the case, if an event has no number.
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

// A zone of code that is annotated for Tracy; without a FrameCounter that takes it, off.
void AnnotatedZone(benchmark::State& state, bool is_used) {
  perfkit::FrameCounter frames({.events = Four()});
  if (!AllCounted(state, frames)) return;
  perfkit::UseAnnotations(is_used ? &frames : nullptr);
  FrameMark;
  for (auto _ : state) {
    ZoneScopedN("zone");
    benchmark::ClobberMemory();
  }
  perfkit::UseAnnotations(nullptr);
}
BENCHMARK_CAPTURE(AnnotatedZone, fast, true)->Name("Zone/tracy_fast");
BENCHMARK_CAPTURE(AnnotatedZone, off, false)->Name("Zone/tracy_off");

// A zone of a FrameCounter whose report has two columns of formulas: they are computed when the report is written.
void PerfkitMetricZone(benchmark::State& state) {
  const auto rate = perfkit::Metric::Parse("faults-per-ms = 1e6 * page-faults / task-clock [/ms]");
  const auto moves = perfkit::Metric::Parse("moves = 100 * cpu-migrations / (context-switches + 1) [%]");
  if (Failed(state, rate) || Failed(state, moves)) return;
  const perfkit::Metric metrics[] = {*rate, *moves};
  perfkit::FrameCounter frames({.events = Four()});
  if (!AllCounted(state, frames)) return;
  frames.Mark();
  for (auto _ : state) {
    PERFKIT_ZONE(frames, "zone");
    benchmark::ClobberMemory();
  }
  frames.Mark();
  const std::string report = frames.FormatZones(metrics);
  if (report.find("faults-per-ms") == report.npos || report.find("moves") == report.npos) {
    state.SkipWithError("the report has no column of a formula");
  }
}
BENCHMARK(PerfkitMetricZone)->Name("Zone/pair_metrics");

// Zones that alternate among many siblings: each must be found.
void PerfkitSiblings(benchmark::State& state) {
  perfkit::FrameCounter frames({.events = Four(), .max_zones = 2000});
  if (!AllCounted(state, frames)) return;
  std::vector<perfkit::ZoneId> zones;
  for (int64_t i = 0; i < state.range(0); ++i) zones.push_back(frames.DefineZone(std::to_string(i)));
  frames.Mark();
  size_t next = 0;
  for (auto _ : state) {
    const perfkit::FrameCounter::Zone zone(frames, zones[next]);
    if (++next == zones.size()) next = 0;
    benchmark::ClobberMemory();
  }
}
BENCHMARK(PerfkitSiblings)->Name("Zone/siblings")->Arg(10)->Arg(1000);

// A zone of a thread without a slot.
void PerfkitRefused(benchmark::State& state) {
  perfkit::FrameCounter frames({.events = Four(), .max_threads = 0});
  std::thread([&] {
    for (auto _ : state) {
      PERFKIT_ZONE(frames, "zone");
      benchmark::ClobberMemory();
    }
  }).join();
}
BENCHMARK(PerfkitRefused)->Name("Zone/refused");

// A thread's first zone, with its set-up.
void PerfkitFirstZone(benchmark::State& state) {
  perfkit::FrameCounter frames({.events = Four()});
  if (!AllCounted(state, frames)) return;
  for (auto _ : state) {
    std::thread([&] {
      const auto start = std::chrono::steady_clock::now();
      { PERFKIT_ZONE(frames, "zone"); }
      state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }).join();
  }
}
BENCHMARK(PerfkitFirstZone)->Name("Zone/first_of_thread")->UseManualTime();

}  // namespace
}  // namespace bench
