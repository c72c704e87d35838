// Why was the frame slow? A loader holds the lock that the renderer needs. "slow_frame hitch.html" writes the frame as
// a page, "slow_frame hitch.pftrace" as a trace.
#include <pthread.h>

#include <chrono>
#include <cstdio>
#include <mutex>
#include <thread>

#include "perfkit/frame_counter.h"
#include "perfkit/profile_writer.h"
#include "perfkit/session.h"
#include "perfkit/slow_frames.h"

using namespace std::chrono_literals;

namespace {

std::mutex level;

[[gnu::noinline]] void LoadLevel() {
  pthread_setname_np(pthread_self(), "loader");
  const std::lock_guard<std::mutex> lock(level);
  std::this_thread::sleep_for(40ms);
}

[[gnu::noinline]] void Render() {
  const std::lock_guard<std::mutex> lock(level);
  std::this_thread::sleep_for(1ms);
}

[[gnu::noinline]] void Simulate() {
  const auto end = std::chrono::steady_clock::now() + 2ms;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  perfkit::FrameCounter frames({.events = {"task-clock", "page-faults"}, .hitch_budget = 20ms});
  auto session = perfkit::Session::Start({.clock = perfkit::SessionClock::kWall, .frames = &frames});
  if (!session.ok()) return fprintf(stderr, "%s\n", session.status().ToString().c_str()), 1;
  std::thread loader;
  for (int frame = 0; frame < 100; ++frame) {
    if (frame == 50) loader = std::thread(LoadLevel);
    {
      PERFKIT_ZONE(frames, "simulate");
      Simulate();
    }
    {
      PERFKIT_ZONE(frames, "render");
      Render();
    }
    frames.Mark();
  }
  loader.join();
  const perfkit::Profile profile = *session->Stop();
  fputs(perfkit::FormatSlowFrames(profile, {.frames = 1}).c_str(), stdout);
  for (const perfkit::SlowFrame& frame : perfkit::FindSlowFrames(profile, {.frames = 1})) {
    if (argc < 2) break;
    const absl::Status written = perfkit::WriteSlowFrame(profile, frame, argv[1]);
    if (!written.ok()) return fprintf(stderr, "%s\n", written.ToString().c_str()), 1;
  }
}
