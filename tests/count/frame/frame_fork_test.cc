// Children of a fork among threads that hold the locks of a FrameCounter or a ThreadSlots: each comes to its end.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "perfkit/thread_slots.h"
#include "tests/count/frame/zones.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// A child that hangs is ended by this, far later than any machine needs.
constexpr unsigned kHungSeconds = 100;

// How a child ends.
enum class ChildEnd {
  kThread,  // Its only thread ends, and the process with it.
  kExit,    // It calls exit(), which runs the destructors of the thread's and the program's objects.
};

// Forks `forks` times while `meanwhile` runs on another thread, over and over. The child runs `child`, and then ends.
// Call it on a std::thread. Returns the number of children that did not come to their end; stops at the first.
template <class Meanwhile, class Child>
int HungChildren(int forks, ChildEnd end, Meanwhile&& meanwhile, Child&& child) {
  std::atomic<bool> stop{false};
  // Not on the stack, which the end of the child's thread unwinds.
  auto* const other = new std::thread([&] {
    while (!stop) meanwhile();
  });
  int hung = 0;
  for (int i = 0; i < forks && hung == 0; ++i) {
    fflush(nullptr);  // the child's end writes what is left
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(kHungSeconds);
      child();
      if (end == ChildEnd::kExit) exit(0);
      pthread_exit(nullptr);
    }
    int status = -1;
    hung += waitpid(pid, &status, 0) != pid || !WIFEXITED(status);
  }
  stop = true;
  other->join();
  delete other;
  return hung;
}

TEST_CASE("frames: a worker's child ends while a report holds the locks", "[fork][law]") {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks among threads");
  FrameCounter frames({.events = {"page-faults"}, .max_zones = 2000});
  const FrameId audio = frames.DefineFrame("audio");
  frames.Mark();
  int hung = -1;
  std::thread([&] {
    // So many zones that a report holds the locks nearly all the time.
    for (int zone = 0; zone < 1000; ++zone) {
      const FrameCounter::Zone many(frames, frames.DefineZone(std::to_string(zone)));
    }
    hung = HungChildren(
        20, ChildEnd::kThread, [&] { (void)frames.Stats(); },
        [&] {
          { const FrameCounter::Zone zone(frames, {"entered in the child"}); }
          frames.Mark(audio);
          (void)frames.history(audio);
          (void)frames.DefineZone("defined in the child");
          (void)frames.DefineFrame("marked in the child");
          (void)frames.AttachThread("attached in the child");
          (void)frames.FormatZones();
        });
  }).join();
  CHECK(hung == 0);
}

TEST_CASE("frames: a worker's child leaves the zone that was open at the fork", "[fork][law]") {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks among threads");
  FrameCounter frames({.events = {"page-faults"}, .max_zones = 2000});
  frames.Mark();
  int hung = -1;
  std::thread([&] {
    for (int zone = 0; zone < 1000; ++zone) {
      const FrameCounter::Zone many(frames, frames.DefineZone(std::to_string(zone)));
    }
    auto open = std::make_unique<FrameCounter::Zone>(frames, ZoneId{"open at the fork"});
    hung = HungChildren(
        20, ChildEnd::kThread, [&] { (void)frames.Stats(); }, [&] { open.reset(); });
  }).join();
  CHECK(hung == 0);
}

TEST_CASE("frames: the child of an attached worker exits while a report holds the locks", "[fork][law]") {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks among threads");
  FrameCounter frames({.events = {"page-faults"}, .max_zones = 2000});
  ThreadSlots slots({"page-faults"});
  frames.Mark();
  int hung = -1;
  std::thread([&] {
    const FrameCounter::AttachedThread attached = frames.AttachThread("worker");
    if (!slots.Attach()) return;
    for (int zone = 0; zone < 1000; ++zone) {
      const FrameCounter::Zone many(frames, frames.DefineZone(std::to_string(zone)));
    }
    hung = HungChildren(
        20, ChildEnd::kExit, [&] { (void)frames.Stats(); }, [] {});
  }).join();
  CHECK(hung == 0);
}

TEST_CASE("frames: a fork leaves the place of a FrameCounter alone that is gone, but that a thread remembers",
          "[fork]") {
  alignas(FrameCounter) std::array<unsigned char, sizeof(FrameCounter)> place{};
  auto* const frames = new (place.data()) FrameCounter({.events = {"page-faults"}});
  std::atomic<int> step{0};
  std::thread other([&] {
    { PERFKIT_ZONE(*frames, "remembered"); }
    step = 1;
    while (step != 2) std::this_thread::yield();
  });
  while (step != 1) std::this_thread::yield();
  frames->~FrameCounter();
  place.fill(0xAA);
  const pid_t child = fork();
  if (child == 0) _exit(std::count(place.begin(), place.end(), 0xAA) == static_cast<ptrdiff_t>(place.size()) ? 0 : 1);
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  step = 2;
  other.join();
}

TEST_CASE("thread slots: a forked child's thread is not attached", "[fork]") {
  ThreadSlots slots({"page-faults"});
  REQUIRE(slots.Attach());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) _exit(slots.Attach() ? 1 : 0);
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(slots.Attach());
}

TEST_CASE("thread slots: children end while other threads come and go", "[fork][many][law]") {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks among threads");
  ThreadSlots slots({"page-faults", "task-clock"});
  const auto publish_on_a_new_thread = [&] { std::thread([&] { slots.Publish(); }).join(); };
  int hung = -1;
  std::thread([&] {
    slots.Publish();
    hung = HungChildren(200, ChildEnd::kThread, publish_on_a_new_thread, [&] {
      slots.Publish();
      SlotTotals totals;
      slots.Total(totals);
    });
  }).join();
  CHECK(hung == 0);
}

}  // namespace
}  // namespace perfkit
