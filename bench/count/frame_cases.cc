// Frames and zones of a FrameCounter with filled histograms.
#include <perfkit/frame_counter.h>
#include <perfkit/metric.h>
#include <perfkit/tracy.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <fstream>
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

// Returns the process's memory that belongs to no file, in KiB: heap, stacks, and what the library has mapped; 0 if the
// kernel does not tell (before Linux 5.0).
double AnonymousKiB() {
  std::ifstream rollup("/proc/self/smaps_rollup");
  for (std::string line; std::getline(rollup, line);) {
    if (line.starts_with("Anonymous:")) return std::stod(line.substr(line.find(':') + 1));
  }
  return 0;
}

// Touches stack and heap as the library may do later, so that only its own memory is new then.
void TouchStackAndHeap() {
  std::vector<std::vector<char>> pieces;
  for (int i = 0; i < 300; ++i) pieces.emplace_back(100);
  char stack[100'000];
  std::fill(std::begin(stack), std::end(stack), 1);
  benchmark::DoNotOptimize(pieces);
  benchmark::DoNotOptimize(stack);
}

// Enters all zones, four deep.
void EnterAll(perfkit::FrameCounter& frames, const std::vector<perfkit::ZoneId>& zones) {
  constexpr size_t kDepth = 4;
  for (size_t i = 0; i < zones.size(); i += kDepth) {
    for (size_t d = 0; d < kDepth; ++d) frames.Enter(zones[i + d]);
    for (size_t d = 0; d < kDepth; ++d) frames.Leave();
  }
}

// Workers with 36 zones each in 50 frames: the memory that each of them takes, and the time of all.
void PerfkitWorkers(benchmark::State& state) {
  constexpr ptrdiff_t kWorkers = 32;
  constexpr int kZones = 36, kFrames = 50;
  perfkit::FrameCounter frames({.events = Four()});
  if (!AllCounted(state, frames)) return;
  std::vector<perfkit::ZoneId> zones;
  for (int i = 0; i < kZones; ++i) zones.push_back(frames.DefineZone("a zone of a worker " + std::to_string(i)));
  double kib = 0;
  for (auto _ : state) {
    std::barrier turn(kWorkers + 1);
    std::vector<std::thread> workers;
    for (ptrdiff_t w = 0; w < kWorkers; ++w) {
      workers.emplace_back([&] {
        TouchStackAndHeap();
        turn.arrive_and_wait();  // All have touched theirs.
        turn.arrive_and_wait();
        for (int frame = 0; frame < kFrames; ++frame) {
          EnterAll(frames, zones);
          turn.arrive_and_wait();
        }
        turn.arrive_and_wait();  // The memory was measured.
      });
    }
    turn.arrive_and_wait();
    const double before = AnonymousKiB();
    const auto start = std::chrono::steady_clock::now();
    turn.arrive_and_wait();
    for (int frame = 0; frame < kFrames; ++frame) {
      turn.arrive_and_wait();
      frames.Mark();
    }
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    kib = (AnonymousKiB() - before) / kWorkers;
    if (before == 0) state.SkipWithError("the kernel does not tell the memory of a process");
    turn.arrive_and_wait();
    for (std::thread& worker : workers) worker.join();
  }
  state.counters["kib"] = kib;
}
BENCHMARK(PerfkitWorkers)->Name("Zone/workers")->UseManualTime()->Iterations(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace bench
