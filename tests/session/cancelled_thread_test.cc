// Threads that are about to be cancelled: perfkit's functions are no cancellation points, as some of them are noexcept,
// and a cancelled thread in one of those ends the process.
#include <pthread.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perfkit/blocked_threads.h"
#include "perfkit/capabilities.h"
#include "perfkit/child.h"
#include "perfkit/counter.h"
#include "perfkit/frame_counter.h"
#include "perfkit/measure.h"
#include "perfkit/profile_writer.h"
#include "perfkit/report.h"
#include "perfkit/sampler.h"
#include "perfkit/session.h"
#include "perfkit/task_counter.h"
#include "perfkit/thread_slots.h"
#include "tests/support/temp_folder.h"

namespace perfkit {
namespace {

struct Step {
  std::function<void()> run;
  std::atomic<bool> done{false};
};

void* RunCancelled(void* argument) {
  auto& step = *static_cast<Step*>(argument);
  pthread_cancel(pthread_self());
  step.run();
  step.done = true;
  pthread_testcancel();
  return nullptr;
}

// Runs `run` on a thread that would end at a cancellation point. Returns true if it ended after `run` alone.
bool EndsAfter(std::function<void()> run) {
  Step step{.run = std::move(run)};
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, RunCancelled, &step) != 0) return false;
  void* result = nullptr;
  pthread_join(thread, &result);
  return step.done && result == PTHREAD_CANCELED;
}

// Each is read in another way.
const std::vector<EventSpec> kEvents = {"page-faults", "task-clock", "rchar"};

TEST_CASE("a cancelled thread opens, reads and destroys counters", "[cancel]") {
  CHECK(EndsAfter([] {
    absl::StatusOr<CounterSet> set = CounterSet::Open(kEvents, Target::ThisThread(), {.require_all = false});
    Snapshot now;
    if (set.ok()) set->Read(now);
  }));
  CHECK(EndsAfter([] { Measure({event::kPageFaults, event::kInstructions}, [] {}).ToString(); }));
  CHECK(EndsAfter([] { FormatCapabilities(ProbeCapabilities()); }));
  CHECK(EndsAfter([] { ListEvents([](const EventInfo&) {}); }));
}

TEST_CASE("a cancelled thread has zones, slots and tasks", "[cancel]") {
  FrameCounter frames({.events = kEvents});
  CHECK(EndsAfter([&] { const FrameCounter::Zone zone(frames, {"zone"}); }));
  CHECK(EndsAfter([&] { const FrameCounter::AttachedThread attached = frames.AttachThread("worker"); }));
  std::atomic<bool> in_zone{false}, disabled{false}, ended{false};
  std::thread other([&] {
    ended = EndsAfter([&] {
      const FrameCounter::Zone zone(frames, {"zone"});
      in_zone = true;
      while (!disabled) std::this_thread::yield();
    });
    in_zone = true;
  });
  while (!in_zone) std::this_thread::yield();
  frames.SetEnabled(false);
  disabled = true;
  other.join();
  CHECK(ended);
  CHECK(EndsAfter([] {
    FrameCounter own({.events = kEvents});
    own.Mark();
  }));
  ThreadSlots slots(kEvents);
  CHECK(EndsAfter([&] { slots.Publish(); }));
  TaskCounter tasks({.events = kEvents});
  CHECK(EndsAfter([&] {
    TaskCounter::Task task = tasks.Create({"task"});
    task.Resume();
    task.Suspend();
  }));
}

TEST_CASE("a cancelled thread samples, profiles and runs programs", "[cancel]") {
  const testing::TempFolder folder;
  CHECK(EndsAfter([] {
    absl::StatusOr<Sampler> sampler = Sampler::Open({.events = {{"page-faults:u"}}});
    if (!sampler.ok() || !sampler->Start().ok()) return;
    sampler->Drain([](const SamplerRecord&) {});
    (void)sampler->Stop();
  }));
  CHECK(EndsAfter([&] {
    absl::StatusOr<Session> session = Session::Start({.clock = SessionClock::kWall});
    if (!session.ok()) return;
    const absl::StatusOr<Profile> profile = session->Stop();
    if (!profile.ok()) return;
    FormatReport(*profile);
    (void)WriteProfile(*profile, folder.path() + "/profile.folded");
  }));
  CHECK(EndsAfter([] { (void)Session::Start(); }));
  CHECK(EndsAfter([] { (void)BlockedThreads(); }));
  CHECK(EndsAfter([] {
    absl::StatusOr<Child> child = Child::Spawn({"true"});
    if (child.ok() && child->Start().ok()) (void)child->Wait();
  }));
  CHECK(EndsAfter([] { (void)Child::Spawn({"true"}); }));
}

}  // namespace
}  // namespace perfkit
