// A recorder that is always on: it keeps the slow frames alone, and explains each as soon as it has ended.
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "perfkit/session.h"

using namespace std::chrono_literals;

namespace {

void PrintSlowFrame(const perfkit::ExplainedFrame& slow) {
  fputs(perfkit::FormatSlowFrame(slow.profile, slow.frame).c_str(), stdout);
}

// Touches memory for the first time: each page is a fault.
[[gnu::noinline]] size_t LoadLevel() {
  const std::vector<char> level(64 << 20, 1);
  return level.size();
}

[[gnu::noinline]] void Simulate() {
  const auto end = std::chrono::steady_clock::now() + 2ms;
  while (std::chrono::steady_clock::now() < end) {
  }
}

}  // namespace

int main() {
  perfkit::FrameCounter frames({.events = {"page-faults"}, .hitch_budget = 20ms});
  auto session = perfkit::Session::Start({
      .clock = perfkit::SessionClock::kWall,
      .frames = &frames,
      .keep = perfkit::KeepFrames{.worst = 4, .on_slow_frame = PrintSlowFrame},
  });
  if (!session.ok()) return fprintf(stderr, "%s\n", session.status().ToString().c_str()), 1;
  for (int frame = 0; frame < 300; ++frame) {
    {
      PERFKIT_ZONE(frames, "simulate");
      Simulate();
    }
    if (frame == 100) {
      PERFKIT_ZONE(frames, "load level");
      frames.Keep("level 3");
      LoadLevel();
    }
    if (frame == 200) std::this_thread::sleep_for(30ms);
    frames.Mark();
  }
  printf("\n%s", perfkit::FormatSlowFrames(*session->Stop(), {.frames = 1}).c_str());
}
