// A program whose loop is annotated for perfkit, and whose library, TBB, for ITT: one table has both.
#include <oneapi/tbb/parallel_for.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "perfkit/frame_counter.h"
#include "perfkit/itt.h"

namespace {

void Simulate(std::vector<double>& heights) {
  tbb::parallel_for(size_t{0}, heights.size(), [&](size_t i) { heights[i] = std::sin(heights[i] + 0.1); });
}

}  // namespace

int main() {
  perfkit::FrameCounter frames({.events = {"task-clock", "page-faults"}});
  auto itt = perfkit::IttCollection::Start(frames);  // before TBB is first used
  if (!itt.ok()) fprintf(stderr, "%s\n", itt.status().ToString().c_str());
  std::vector<double> heights(1 << 18);
  for (int frame = 0; frame < 20; ++frame) {
    {
      PERFKIT_ZONE(frames, "simulate");
      Simulate(heights);
    }
    frames.Mark();
  }
  if (itt.ok()) itt->Stop();  // before `frames` is destroyed
  fputs(frames.FormatZones().c_str(), stdout);
  if (itt.ok() && itt->Stats().copies == 0) puts("no annotated code has called ITT since Start");
}
