// What a session that keeps slow frames costs: the program's frames, a reason, and an explained frame.
#include <perfkit/frame_counter.h>
#include <perfkit/session.h>

#include <chrono>
#include <optional>
#include <thread>

#include "bench/support/events.h"

namespace bench {
namespace {

using namespace std::chrono_literals;

constexpr int kZones = 100;

double Seconds(std::chrono::steady_clock::duration time) { return std::chrono::duration<double>(time).count(); }

perfkit::SessionOptions KeepingOf(const perfkit::FrameCounter& frames, perfkit::KeepFrames keep) {
  return {.clock = perfkit::SessionClock::kWall, .frames = &frames, .keep = std::move(keep)};
}

// A frame of some 100 us, with as many zones.
void PlayFrame(perfkit::FrameCounter& frames) {
  for (int i = 0; i < kZones; ++i) {
    PERFKIT_ZONE(frames, "zone");
    for (int step = 0; step < 500; ++step) benchmark::DoNotOptimize(step);
  }
}

void RecorderFrame(benchmark::State& state, bool is_on) {
  perfkit::FrameCounter frames({.events = Four()});
  std::optional<perfkit::Session> session;
  if (is_on) {
    absl::StatusOr<perfkit::Session> started = perfkit::Session::Start(KeepingOf(frames, {}));
    if (!started.ok()) return state.SkipWithError(started.status().ToString().c_str());
    session.emplace(*std::move(started));
  }
  frames.Mark();
  for (auto _ : state) {
    PlayFrame(frames);
    frames.Mark();
  }
}
BENCHMARK_CAPTURE(RecorderFrame, off, false)->Name("Recorder/off");
BENCHMARK_CAPTURE(RecorderFrame, on, true)->Name("Recorder/on");

// In batches that the log has room for; the session empties it in between.
void KeepFrame(benchmark::State& state) {
  constexpr int kBatch = 1000;
  perfkit::FrameCounter frames({.events = Four()});
  perfkit::SessionOptions options = KeepingOf(frames, {});
  options.own_thread = false;
  absl::StatusOr<perfkit::Session> session = perfkit::Session::Start(std::move(options));
  if (!session.ok()) return state.SkipWithError(session.status().ToString().c_str());
  frames.Mark();
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBatch; ++i) frames.Keep("level=3, players=64");
    state.SetIterationTime(Seconds(std::chrono::steady_clock::now() - start) / kBatch);
    frames.Mark();
    if (!session->Poll().ok()) return state.SkipWithError("the session has ended");
  }
}
BENCHMARK(KeepFrame)->Name("Keep/frame")->UseManualTime()->Iterations(200);

// The Poll that decides on a frame with a reason, explains it and hands it over.
void AnalyseFrame(benchmark::State& state) {
  perfkit::FrameCounter frames({.events = Four()});
  uint64_t told = 0;
  perfkit::SessionOptions options =
      KeepingOf(frames, {.on_slow_frame = [&](const perfkit::ExplainedFrame&) { ++told; }});
  options.own_thread = false;
  absl::StatusOr<perfkit::Session> session = perfkit::Session::Start(std::move(options));
  if (!session.ok()) return state.SkipWithError(session.status().ToString().c_str());
  frames.Mark();
  uint64_t asked = 0;
  for (auto _ : state) {
    PlayFrame(frames);
    frames.Mark();
    frames.Keep("each");
    PlayFrame(frames);
    frames.Mark();
    ++asked;
    std::this_thread::sleep_for(3ms);  // the session decides once all records of a frame are there
    const auto start = std::chrono::steady_clock::now();
    if (!session->Poll().ok()) return state.SkipWithError("the session has ended");
    state.SetIterationTime(Seconds(std::chrono::steady_clock::now() - start));
  }
  if (told + 1 < asked) state.SkipWithError("some frames were not handed over");
}
BENCHMARK(AnalyseFrame)->Name("Analyse/frame")->UseManualTime()->Iterations(200)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace bench
