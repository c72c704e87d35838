// A collector in the program's own FrameCounter: tasks beside the program's zones, and the end of collection while
// other threads go on. Without libperfkit_itt.so: a stand-in for ittnotify is connected directly.
#include "src/itt/collector.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

#include "tests/itt/collecting.h"
#include "tests/itt/zones.h"
#include "tests/support/signal_storm.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::itt {
namespace {

using testing::FreshPages;

TEST_CASE("itt collector: tasks are zones inside of the program's, with what was planted in them", "[itt][law]") {
  FrameCounter frames({.events = {"page-faults"}});
  if (!frames.reason(0).empty()) FAIL(frames.reason(0));
  FreshPages pages(1100);
  const Collecting collecting(frames);
  for (int round = 0; round < 2; ++round) {  // The first call of each function faults on its own code.
    pages.Forget();
    for (size_t i = 0; i < 100; ++i) {
      {
        PERFKIT_ZONE(frames, "update");
        Begin(g_work);
        pages.Touch(11 * i, 5);
        {
          PERFKIT_ZONE(frames, "step");
          pages.Touch(11 * i + 5, 3);
          Begin(g_inner, g_other_domain);
          pages.Touch(11 * i + 8, 3);
          End(g_other_domain);
        }
        End();
      }
      frames.Mark();
    }
  }
  const Zones zones(frames);
  CHECK(zones.Calls("update") == 200);
  CHECK(zones.Calls("update > app: work") == 200);
  CHECK(zones.Calls("update > app: work > step") == 200);
  CHECK(zones.Calls("update > app: work > step > library: inner") == 200);
  CHECK(zones.Total("update > app: work > step > library: inner") >= 600);
  CHECK(zones.Total("update > app: work") >= 2200);
  CHECK(zones.Total("update > app: work") == zones.Self("update > app: work") +
                                                 zones.Self("update > app: work > step") +
                                                 zones.Self("update > app: work > step > library: inner"));
  CHECK(frames.Stats().frames == 200);
  CHECK(frames.Stats().mismatched == 0);
}

TEST_CASE("itt collector: tasks of other threads are in their groups, by the program's name or by ITT's",
          "[itt][law]") {
  FrameCounter frames({.events = {"page-faults"}});
  const Collecting collecting(frames);
  std::vector<std::thread> threads;
  threads.emplace_back([&] {
    const FrameCounter::AttachedThread attached = frames.AttachThread("mine");
    Program().thread_set_name("ignored");
    Tasks(10);
  });
  threads.emplace_back([] {
    Program().thread_set_name("theirs");
    Tasks(20);
    Program().thread_set_name("too late");
    Tasks(1);
  });
  threads.emplace_back([] { Tasks(40); });
  for (std::thread& thread : threads) thread.join();
  Program().thread_set_name("the marking thread has no other name");
  Tasks(80);
  frames.Mark();
  const Zones zones(frames);
  CHECK(zones.CallsOn("mine", "app: work") == 10);
  CHECK(zones.CallsOn("theirs", "app: work") == 21);
  CHECK(zones.CallsOn("workers", "app: work") == 40);
  CHECK(zones.CallsOn("", "app: work") == 80);
  CHECK(zones.Calls("app: work") == 151);
}

TEST_CASE("itt collector: a pause of ITT leaves the program's own zones alone", "[itt]") {
  FrameCounter frames({.events = {"page-faults"}});
  const Collecting collecting(frames);
  const auto round = [&] {
    PERFKIT_ZONE(frames, "update");
    Tasks(1);
  };
  round();
  Program().pause();
  round();
  round();
  Program().resume();
  round();
  frames.Mark();
  frames.SetEnabled(false);
  round();
  frames.SetEnabled(true);
  round();
  frames.Mark();
  CHECK(Zones(frames).Calls("update") == 5);
  CHECK(Zones(frames).Calls("update > app: work") == 3);
  CHECK(collecting.uncounted().paused == 3);
}

TEST_CASE("itt collector: an end that belongs to nothing leaves the program's zones open", "[itt]") {
  FrameCounter frames({.events = {"page-faults"}});
  const Collecting collecting(frames);
  {
    PERFKIT_ZONE(frames, "update");
    End();
    Begin(g_work);
    Begin(g_inner, g_other_domain);
    std::thread([] { End(); }).join();
    End();  // With the other inside.
    PERFKIT_ZONE(frames, "step");
  }
  frames.Mark();
  CHECK(Zones(frames).Calls("update > step") == 1);
  CHECK(Zones(frames).Calls("update > app: work > library: inner") == 1);
  CHECK(collecting.uncounted().stray_ends == 2);
  CHECK(collecting.uncounted().cut == 1);
}

TEST_CASE("itt collector: after the end calls do nothing, and another collection is complete", "[itt][law]") {
  std::optional<FrameCounter> frames(FrameOptions{.events = {"page-faults"}});
  std::optional<Collecting> collecting(*frames);
  Begin(g_work);  // Ended with the collection.
  Tasks(3);
  collecting.reset();
  Tasks(5);
  End();
  { PERFKIT_ZONE(*frames, "after"); }
  frames->Mark();
  CHECK(Zones(*frames).Calls("app: work") == 1);
  CHECK(Zones(*frames).Calls("app: work > app: work") == 3);
  CHECK(Zones(*frames).Calls("after") == 1);
  frames.reset();
  Tasks(7);

  FrameCounter second({.events = {"page-faults"}});
  collecting.emplace(second);
  End();
  Tasks(11);
  second.Mark();
  CHECK(Zones(second).Calls("app: work") == 11);
  CHECK(collecting->uncounted().stray_ends == 1);
}

TEST_CASE("itt collector: tasks that stay open on other threads are given up at the end", "[itt]") {
  FrameCounter frames({.events = {"page-faults"}});
  Collecting collecting(frames);
  Steps other;
  other.Do([] {
    Begin(g_work);
    Begin(g_inner);
  });
  collecting.Stop();
  CHECK(collecting.uncounted().unended == 2);
  CHECK(frames.Stats().cross_thread == 2);
  other.Do([&] {
    End();
    End();
    PERFKIT_ZONE(frames, "after");
  });
  CHECK(Zones(frames).Calls("after") == 1);
}

// Returns true if the collector has begun to end: then it takes no times any more.
bool IsEnding(const Collecting& collecting) {
  const uint64_t before = collecting.timed().untimed;
  Program().frame_submit(&g_domain, nullptr, kNoTimestamp, kNoTimestamp);
  return collecting.timed().untimed == before;
}

TEST_CASE("itt collector: the end waits for tasks that end soon", "[itt][law]") {
  FrameCounter frames({.events = {"page-faults"}});
  Collecting collecting(frames);
  std::atomic<bool> open{false};
  constexpr size_t kPages = 50;
  std::thread other([&] {
    FreshPages pages(kPages);
    Begin(g_work);
    open = true;
    while (!IsEnding(collecting)) std::this_thread::yield();
    Begin(g_inner);  // Too late.
    End();
    pages.Touch(0, kPages);
    End();
  });
  while (!open) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  collecting.Stop();
  const bool in_time = std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(100);
  other.join();
  CHECK(Zones(frames).CallsAnywhere("app: inner") == 0);
  CHECK(Zones(frames).Calls("app: work") + collecting.uncounted().unended == 1);
  CHECK(frames.Stats().cross_thread == collecting.uncounted().unended);
  if (in_time) CHECK(collecting.uncounted().unended == 0);
  if (collecting.uncounted().unended == 0) CHECK(Zones(frames).Total("app: work") >= kPages);
}

TEST_CASE("itt collector: FrameCounters come and go while threads have tasks", "[itt][law]") {
  std::atomic<bool> over{false};
  std::atomic<uint64_t> begun{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      StringHandle later{.text = "later"};
      while (!over) {
        Begin(g_work);
        Begin(later);
        begun += 2;
        End();
        End();
      }
    });
  }
  uint64_t counted = 0;
  for (int round = 0; round < 20; ++round) {
    FrameCounter frames({.events = {"page-faults"}});
    Collecting collecting(frames);
    const uint64_t before = begun;
    while (begun < before + 50) std::this_thread::yield();
    collecting.Stop();
    const uint64_t zones = Zones(frames).CallsAnywhere("app: work") + Zones(frames).CallsAnywhere("app: later");
    if (collecting.uncounted().unended == 0) CHECK(zones >= 44);  // 50, but those that had begun before.
    counted += zones;
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(counted <= begun);
}

TEST_CASE("itt collector: threads end after the FrameCounter, inside of a task", "[itt]") {
  std::optional<FrameCounter> frames(FrameOptions{.events = {"page-faults"}});
  std::optional<Collecting> collecting(*frames);
  {
    Steps other;
    other.Do([] { Begin(g_work); });
    collecting.reset();
    frames.reset();
    other.Do([] { Begin(g_inner); });
  }
  SUCCEED("nothing was touched that is gone");
}

TEST_CASE("itt collector: tasks of signal handlers add up with the zones that they interrupt", "[itt][law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see handlers");
  FrameCounter frames({.events = {"page-faults"}});
  const Collecting collecting(frames);
  Begin(g_inner);  // A name's first task locks, which a handler must not.
  End();
  static std::atomic<uint64_t> handled{0};
  uint64_t rounds = 0;
  {
    const testing::SignalStorm storm([] {
      ++handled;
      Begin(g_inner);
      End();
    });
    for (; handled < 300; ++rounds) {
      PERFKIT_ZONE(frames, "update");
      Tasks(1);
    }
  }
  frames.Mark();
  const Zones zones(frames);
  CHECK(zones.Calls("update") == rounds);
  CHECK(zones.Calls("update > app: work") == rounds);
  const Uncounted& uncounted = collecting.uncounted();
  CHECK(zones.CallsAnywhere("app: inner") + uncounted.in_handler + uncounted.refused == handled + 1);
  CHECK(uncounted.stray_ends == 0);
  CHECK(uncounted.cut == 0);
}

TEST_CASE("itt collector: a forked child counts nothing, and ends its copy", "[itt]") {
  FrameCounter frames({.events = {"page-faults"}});
  Collecting collecting(frames);
  Begin(g_work);
  Steps other;
  other.Do([] { Begin(g_work); });  // The child has no such thread: its end must not wait for it.
  const pid_t child = fork();
  if (child == 0) {
    Tasks(100);
    End();
    Program().thread_set_name("child");
    collecting.Stop();
    Tasks(100);
    FrameCounter own({.events = {"page-faults"}});
    const Collecting collecting_again(own);
    Tasks(3);
    own.Mark();
    _exit(Zones(own).Calls("app: work") == 3 ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  other.Do([] { End(); });
  End();
  frames.Mark();
  CHECK(Zones(frames).Calls("app: work") == 2);
}

}  // namespace
}  // namespace perfkit::itt
