// An engine that is annotated for Tracy, counted by perfkit. Build it with TRACY_ENABLE and Tracy, and both have it.
#include <cstdio>
#include <thread>
#include <vector>

#include "perfkit/tracy.h"  // instead of <tracy/Tracy.hpp>

namespace {

void Spawn(int count) {
  ZoneScopedN("spawn");
  ZoneValue(static_cast<uint64_t>(count));
  std::vector<char> monsters(static_cast<size_t>(count) << 16, 1);
}

void Update(int frame) {
  ZoneScoped;
  if (frame % 10 != 0) return;
  Spawn(1 + frame / 10);
}

void Stream() {
  tracy::SetThreadName("streaming");
  for (int file = 0; file < 8; ++file) {
    ZoneScopedN("load");
    std::vector<char> bytes(1 << 20, 1);
  }
}

void RunEngine() {
  std::thread streaming(Stream);
  for (int frame = 0; frame < 60; ++frame) {
    Update(frame);
    FrameMark;
  }
  streaming.join();
}

}  // namespace

int main() {
  perfkit::FrameCounter frames({.events = {"task-clock", "page-faults", "context-switches"}});
  perfkit::UseAnnotations(&frames);
  RunEngine();
  fputs(frames.FormatZones().c_str(), stdout);
  perfkit::UseAnnotations(nullptr);
}
