// Calls every function of the hot headers. Compiled with perfkit, to see that it does (in_step.cmake), and with
// PERFKIT_ENABLE=0, to see that each of them is there too, and counts nothing.
#include <cstdio>
#include <string>
#include <vector>

#include "perfkit/counter.h"
#include "perfkit/frame_counter.h"
#include "perfkit/itt.h"
#include "perfkit/measure.h"
#include "perfkit/optick.h"
#include "perfkit/scope.h"
#include "perfkit/task_coroutine.h"
#include "perfkit/task_job.h"
#include "perfkit/thread_slots.h"
#include "perfkit/tracy.h"
#include "perfkit/warmup.h"

namespace {

using namespace perfkit;

int failures = 0;

// Checks what holds when nothing is counted. Evaluates `expected` in both modes.
void CheckOff(bool expected, const char* what) {
  if (PERFKIT_ENABLE != 0 || expected) return;
  std::printf("FAILED: %s\n", what);
  ++failures;
}
#define CHECK_OFF(...) CheckOff((__VA_ARGS__), #__VA_ARGS__)

void CallCounters() {
  const std::vector<EventSpec> list = {"page-faults", std::string("cycles")};
  auto set = CounterSet::Open({"task-clock", event::kPageFaults}, Target::ThisThread(), {.require_all = false});
  auto listed = CounterSet::Open(list);
  auto counter = Counter::Open("task-clock", Target::AllThreads(), {.user_only = true});
  CHECK_OFF(!set.ok() && !listed.ok() && !counter.ok());
  CHECK_OFF(!set.status().ok() && !set.status().ToString().empty() && !set.status().message().empty());
  Count count;
  CHECK_OFF(!counter->Read(count) && !count.validity.counted() && counter->set().size() == 0);
  CHECK_OFF(!set->Enable().ok() && !set->Disable().ok() && !set->reason(0).ok() && set->name(0).empty());
  CHECK_OFF(set->path(0) == ReadPath::kGroupRead && !ReadPathName(ReadPath::kRing).empty());
  auto moved = std::move(*set);
  moved = std::move(*listed);

  Snapshot begin, end;
  moved.Read(begin);
  moved.Read(end);
  CHECK_OFF(!moved.Difference(begin, end, 0).validity.counted() && !moved.Difference(begin, end, 0).scaled());
  CHECK_OFF(moved.MissingBetween(begin, end) != 0 && moved.gapped() == 0 && moved.multiplexable() == 0);
  CHECK_OFF(moved.kinds()[0] == CountKind{} && !moved.kinds()[0].mixed());
  CHECK_OFF(!moved.fixed_flags(0).counted() && !CounterReader::SharedValidity(begin, end).counted());
  ScopeTotals total, other;
  { const CounterScope scope(moved, total); }
  total.Add(moved, begin, end);
  total.Merge(other);
  CHECK_OFF(!total.count(moved, 0).validity.counted() && total.scopes() == 0 && total.cross_thread() == 0);
}

void CallThreadSlots() {
  ThreadSlots slots({"task-clock"}, {.max_threads = 4});
  ThreadSlots with_defaults({"task-clock"});
  CHECK_OFF(!slots.Attach());
  slots.Publish();
  SlotTotals sum;
  slots.Total(sum);
  CHECK_OFF(!slots.count(sum, 0).validity.counted() && sum.threads == 0);
  CHECK_OFF(slots.size() == 0 && slots.refused() == 0 && !slots.reason(0).empty());
  const std::vector<EventSpec> list = {"page-faults"};
  Warmup warm({"task-clock"}), from_list{std::span<const EventSpec>(list)};
  warm = std::move(from_list);
  const Warmup moved(std::move(warm));
  warm.Cooldown();
  CHECK_OFF(moved.size() == 0);
}

void CallFrames(FrameCounter& frames) {
  frames.OnHitch([](const Hitch&) {});
  const ZoneId zone = frames.DefineZone("made at run time");
  const FrameId chain = frames.DefineFrame("audio");
  frames.AttachState("level=3");
  frames.AttachState(chain, "level=3");
  frames.Keep("level=3");
  frames.Keep(chain, "level=3");
  {
    const FrameCounter::Zone held(frames, zone);
    FrameCounter::Zone ended(&frames, zone);
    FrameRecord counts;
    ended.End(counts);
    CHECK_OFF(counts.missing == ~0u);
    PERFKIT_ZONE(frames, "literal");
    frames.Enter(zone);
    frames.Leave();
    auto attached = frames.AttachThread("worker");
    const FrameCounter::AttachedThread moved = std::move(attached);
  }
  frames.Mark();
  frames.Mark(chain);
  frames.SetEnabled(true);
  CHECK_OFF(!frames.enabled() && frames.last().wall_ns == 0 && frames.last(chain).missing == ~0u);
  CHECK_OFF(frames.history().size() == 0 && frames.history(chain).empty() && frames.zones().empty());
  CHECK_OFF(frames.hitches().empty() && frames.Stats().zones == 0 && frames.FormatZones().empty());
  SlotTotals workers;
  frames.WorkerTotals(workers);
  CHECK_OFF(workers.missing != 0 && frames.size() == 0 && frames.name(0).empty() && !frames.reason(0).empty());
  CHECK_OFF(frames.path(0) == ReadPath::kGroupRead);
}

void CallAnnotations(FrameCounter& frames) {
  UseAnnotations(&frames);
  tracy::SetThreadName("main");
  {
    ZoneScopedN("zone");
    ZoneNamedNC(named, "named", 0xff, frames.enabled());
    ZoneTransientN(transient, "transient", true);
    ZoneText("text", 4);
    FrameMarkStart("run");
    FrameMarkEnd("run");
  }
  FrameMark;
  FrameMarkNamed("audio");
  {
    OPTICK_THREAD("main");
    OPTICK_EVENT("event", Optick::Category::AI);
    OPTICK_EVENT_DYNAMIC("dynamic");
    OPTICK_TAG("tag", 1);
    OPTICK_PUSH("push");
    OPTICK_POP();
  }
  OPTICK_FRAME("main");
  OPTICK_FRAME_EVENT(Optick::FrameType::Render);
  OPTICK_START_THREAD("pool");
  OPTICK_STOP_THREAD();
  UseAnnotations(nullptr);
}

void CallItt(FrameCounter& frames) {
  auto itt = IttCollection::Start(frames, "libperfkit_itt.so");
  CHECK_OFF(!itt.ok() && !itt.status().message().empty());
  IttCollection moved = std::move(*itt);
  *itt = std::move(moved);
  CHECK_OFF(itt->Stats().copies == 0 && itt->Stats().times.empty());
  itt->Stop();
}

void CallTasks() {
  TaskCounter tasks({.events = {"task-clock"}, .max_zones = 8});
  TaskCounter::Task one = tasks.Create({"one"}), other;
  other = tasks.Create({"other"});
  const TaskCounter::Task moved = std::move(other);
  one.Resume();
  {
    const TaskCounter::Zone zone(tasks, {"zone"});
    PERFKIT_TASK_ZONE(tasks, "literal");
  }
  one.Suspend();
  one.Enqueue();
  one.SetAwaiter({});
  { const TaskScope scope(one); }
  TaskCounter::Switch(one, other);
  { const TaskPause pause(one); }
  CHECK_OFF(CountedJob(tasks, {"job"}, [](TaskCounter::Task&, int value) { return value; })(7) == 7);
  CHECK_OFF(Counted(one, std::suspend_never()).await_ready());
  CHECK_OFF(!tasks.AttachThread() && tasks.zones().empty() && one.totals().runs == 0 && moved.totals().run_ns == 0);
  CHECK_OFF(!tasks.Outside().counts[0].validity.counted() && tasks.Stats().created == 0 && tasks.size() == 0);
  CHECK_OFF(tasks.name(0).empty() && !tasks.reason(0).empty() && tasks.path(0) == ReadPath::kGroupRead);
  CHECK_OFF(tasks.FormatTasks().empty() && one.number() == 0);
}

void Called() {}

void CallMeasure() {
  int runs = 0;
  const Measurement m = Measure({event::kInstructions, event::kAllocations}, [&] { return ++runs; });
  CHECK_OFF(runs == 0 && m.costs.size() == 2 && !m.costs[0].measured() && !m.costs[0].unmeasurable.empty());
  CHECK_OFF(m.costs[0].value() == 0 && m.costs[0].interval().high == 0 && m.costs[0].steady());
  CHECK_OFF(m.Find(event::kAllocations) == &m.costs[1] && !EventClassName(m.costs[0].event_class).empty());
  CHECK_OFF(m.ToString().find(m.costs[0].ToString()) == 0);
  const Comparison compared = Compare({event::kSyscalls}, Called, [&] { ++runs; }, {.repetitions = 3});
  CHECK_OFF(!compared.Ratio(event::kSyscalls) && !compared.ToString().empty());
  const ScalingResult scaling = Scaling({Calls(Called)}, [&](uint64_t) { ++runs; }, {1, 2, 4});
  CHECK_OFF(scaling.at.size() == 3 && !scaling.ToString().empty() && runs == 0);
}

}  // namespace

int main() {
  FrameOptions options{.history_frames = 64};
  options.events.push_back("task-clock");
  FrameCounter frames(options);
  CallFrames(frames);
  CallAnnotations(frames);
  CallItt(frames);
  CallCounters();
  CallThreadSlots();
  CallTasks();
  CallMeasure();
  return failures == 0 ? 0 : 1;
}
