// A program with ITT annotations that has a FrameCounter of its own, and collects its tasks there. It does what its
// first argument says, with the collector that the second one names, if it does, and prints what it has counted.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "perfkit/frame_counter.h"
#include "perfkit/itt.h"
#include "tests/itt/static_part.h"
#include "tests/itt/zones.h"
#ifdef PERFKIT_WITH_TBB
#include "tests/itt/graph.h"
#endif

namespace {

using perfkit::FrameCounter;
using perfkit::IttCollection;
using perfkit::IttStats;
using perfkit::itt::Zones;

// Of the program, and of a library that it has loaded.
perfkit::itt::StaticPart g_program, g_library;
perfkit::itt::Domain g_domain{.flags = 1, .name = "app"};
perfkit::itt::StringHandle g_work{.text = "work"};

// As ittnotify does at the first call. Returns false if no collector is set.
bool Load(perfkit::itt::StaticPart& part) {
  const char* const collector = std::getenv("INTEL_LIBITTNOTIFY64");
  return collector != nullptr && part.Load(collector).empty();
}

void Tasks(const perfkit::itt::StaticPart& part, int count) {
  for (int i = 0; i < count; ++i) {
    if (part.calls.task_begin != nullptr) part.calls.task_begin(&g_domain, {}, {}, &g_work);
    if (part.calls.task_end != nullptr) part.calls.task_end(&g_domain);
  }
}

// "zones <number> copies <number>"
void Print(FrameCounter& frames, const IttCollection& itt) {
  frames.Mark();
  std::printf("zones %zu copies %u\n", static_cast<size_t>(Zones(frames).CallsAnywhere("app: work")),
              itt.Stats().copies);
}

void Work(FrameCounter& frames, IttCollection& itt) {
  PERFKIT_ZONE(frames, "update");
  Load(g_program);
  Tasks(g_program, 10);
  itt.Stop();
  Load(g_library);  // It is connected, and does nothing.
  Tasks(g_library, 100);
  Tasks(g_program, 100);
}

void Times(IttCollection& itt) {
  Load(g_program);
  const auto& calls = g_program.calls;
  const auto now = calls.get_timestamp();
  calls.frame_submit(&g_domain, nullptr, now - 2'000, now);
  calls.frame_submit(&g_domain, nullptr, now - 4'000, now);
  calls.task_begin_overlapped(&g_domain, {1, 0, 0}, {}, &g_work);
  calls.task_begin_overlapped(&g_domain, {2, 0, 0}, {}, &g_work);
  calls.task_end_overlapped(&g_domain, {1, 0, 0});
  calls.task_end_overlapped(&g_domain, {3, 0, 0});
  const IttStats stats = itt.Stats();
  for (const perfkit::IttTimes& times : stats.times) {
    std::printf("%s: %zu, max %zu\n", times.name.c_str(), static_cast<size_t>(times.calls),
                static_cast<size_t>(times.max_ns));
  }
  std::printf("open %zu stray %zu\n", static_cast<size_t>(stats.timed_open), static_cast<size_t>(stats.timed_stray));
}

#ifdef PERFKIT_WITH_TBB
void Graph(FrameCounter& frames, IttCollection& itt) {
  perfkit::testing::GraphRun run;
  {
    PERFKIT_ZONE(frames, "graph");
    run = perfkit::testing::RunGraph();
  }
  frames.Mark();
  itt.Stop();
  const Zones zones(frames);
  std::printf("%lu %zu %zu %ld %zu %zu %zu\n", run.bodies, static_cast<size_t>(zones.CallsAnywhere("tbb.flow: body")),
              run.pages, perfkit::testing::ProcessFaults(), static_cast<size_t>(zones.TotalAnywhere("tbb.flow: body")),
              static_cast<size_t>(itt.Stats().unended),
              static_cast<size_t>(zones.CallsOn("", "graph > tbb: tbb_parallel_for")));
}
#endif

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  if (what == "taken over") {
    Load(g_program);
    Tasks(g_program, 1000);
  }
  FrameCounter frames({.events = {"page-faults"}});
  auto itt = IttCollection::Start(frames, argc > 2 ? argv[2] : nullptr);
  if (!itt.ok()) {
    std::printf("%s\n", itt.status().ToString().c_str());
    return 0;
  }
  if (what == "work") {
    Work(frames, *itt);
    Print(frames, *itt);
  }
  if (what == "taken over") {
    Tasks(g_program, 10);
    Print(frames, *itt);
  }
  if (what == "unknown") {
    g_library.global.magic[3] ^= 1;
    Load(g_library);
    Tasks(g_library, 10);
    const IttStats stats = itt->Stats();
    std::printf("copies %u unknown %u\n", stats.copies, stats.unknown_copies);
  }
  if (what == "times") Times(*itt);
  if (what == "another") std::printf("%s\n", IttCollection::Start(frames).status().ToString().c_str());
  if (what == "starts" && argc > 3) {  // Another program, which inherits the environment.
    std::fflush(stdout);
    if (chdir("/") != 0) return 1;
    return std::system(argv[3]);
  }
#ifdef PERFKIT_WITH_TBB
  if (what == "graph") Graph(frames, *itt);
#endif
  return 0;
}
