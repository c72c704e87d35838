// An engine's main loop in small: frames, a zone, and a late frame with its cause.
#include <chrono>
#include <cstdio>
#include <vector>

#include "perfkit/frame_counter.h"

using namespace std::chrono_literals;

namespace {

// Frame 40 loads something: 80 MiB of memory that has not been touched yet.
void StepWorld(int frame) { std::vector<char> level(frame == 40 ? 80 << 20 : 1 << 10, 1); }

void Draw(const perfkit::FrameRecord& last) { (void)last; }

}  // namespace

int main() {
  perfkit::FrameCounter frames({.events = {"task-clock", "page-faults", "context-switches"}, .hitch_budget = 20ms});
  frames.OnHitch([](const perfkit::Hitch& hitch) {
    printf("frame %llu was late: %s\n", static_cast<unsigned long long>(hitch.frame), hitch.cause);
  });
  for (int frame = 0; frame < 60; ++frame) {
    {
      PERFKIT_ZONE(frames, "physics");
      StepWorld(frame);
    }
    Draw(frames.last());
    frames.Mark();
  }
  fputs(frames.FormatZones().c_str(), stdout);
}
