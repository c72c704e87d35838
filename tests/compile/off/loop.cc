// An engine's main loop with counters everywhere: compiled with perfkit, and with PERFKIT_ENABLE=0 on this and on other
// systems. It calls every function that an engine calls in a frame, and prints nothing: at -O2 nothing may be left of
// perfkit when it is off.
#include <chrono>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/frame_counter.h"
#include "perfkit/itt.h"
#include "perfkit/optick.h"
#include "perfkit/scope.h"
#include "perfkit/task_counter.h"
#include "perfkit/thread_slots.h"
#include "perfkit/tracy.h"
#include "perfkit/warmup.h"

using namespace std::chrono_literals;

namespace {

volatile int world = 0;
volatile unsigned long long late_frames = 0;

void Step(perfkit::FrameCounter& frames) {
  PERFKIT_ZONE(frames, "step");
  for (int i = 0; i < 10; ++i) {
    PERFKIT_ZONE(frames, "solve");
    world = world + 1;
  }
}

void Worker(perfkit::FrameCounter& frames, perfkit::ThreadSlots& slots, perfkit::ZoneId job) {
  const perfkit::FrameCounter::AttachedThread attached = frames.AttachThread("worker");
  frames.Enter(job);
  world = world + 1;
  frames.Leave();
  slots.Publish();
}

// Code that is annotated for other profilers.
void Annotated(int frame) {
  ZoneScoped;
  OPTICK_EVENT();
  ZoneTransientN(zone, "transient", frame % 2 == 0);
  OPTICK_EVENT_DYNAMIC("dynamic");
  tracy::SetThreadName("main");
  world = world + 1;
  FrameMarkNamed("audio");
}

void Fiber(perfkit::TaskCounter& tasks, perfkit::TaskCounter::Task& task) {
  const perfkit::TaskScope scope(task);
  PERFKIT_TASK_ZONE(tasks, "job");
  world = world + 1;
}

bool CountRegion() {
  auto set = perfkit::CounterSet::Open({"task-clock", perfkit::event::kPageFaults});
  if (!set.ok()) return false;
  perfkit::ScopeTotals total;
  for (int i = 0; i < 10; ++i) {
    perfkit::CounterScope scope(*set, total);
    world = world + 1;
  }
  return total.count(*set, 1).validity.counted();
}

}  // namespace

int main() {
  const perfkit::Warmup warm({"task-clock", "page-faults"});
  perfkit::FrameCounter frames({.events = {"task-clock", perfkit::event::kPageFaults}, .hitch_budget = 20ms});
  frames.OnHitch([](const perfkit::Hitch& hitch) { late_frames = late_frames + hitch.frame; });
  perfkit::ThreadSlots slots({"task-clock"});
  perfkit::TaskCounter tasks({.events = {"task-clock"}});
  perfkit::TaskCounter::Task task = tasks.Create({"fiber"});
  perfkit::UseAnnotations(&frames);
  auto itt = perfkit::IttCollection::Start(frames);
  const perfkit::ZoneId job = frames.DefineZone("job");
  const perfkit::FrameId audio = frames.DefineFrame("audio");
  for (int frame = 0; frame < 60; ++frame) {
    {
      const perfkit::FrameCounter::Zone zone(frames, job);
      Step(frames);
    }
    Worker(frames, slots, job);
    Annotated(frame);
    Fiber(tasks, task);
    frames.Mark(audio);
    frames.Mark();
    world = world + static_cast<int>(frames.last().wall_ns & 1);
  }
  perfkit::UseAnnotations(nullptr);
  itt->Stop();
  perfkit::SlotTotals sum;
  slots.Total(sum);
  frames.SetEnabled(false);
  const bool counted = CountRegion() || slots.count(sum, 0).validity.counted();
  return world < 60 * 13 || (counted && PERFKIT_ENABLE == 0) ? 1 : 0;
}
