// FrameCounter on the real kernel: frames, zones, threads, off and on, forks, and nothing allocated on the way.
#include "perfkit/frame_counter.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <numeric>
#include <string>
#include <thread>

#include "perfkit/counter.h"
#include "src/base/sanitizers.h"
#include "tests/count/frame/zones.h"
#include "tests/support/counted_new.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

TEST_CASE("frames: faults of each zone and frame are the pages that it touched") {
  FrameCounter frames({.events = kEvents});
  if (!frames.reason(kFaults).empty()) SKIP_TEST(std::string(frames.reason(kFaults)));
  testing::FreshPages pages(4096);
  const testing::OtherFaults others;
  frames.Mark();
  size_t next = 0;
  for (uint64_t frame = 0; frame < 50; ++frame) {
    const testing::OtherFaults others_of_frame;
    {
      PERFKIT_ZONE(frames, "load");
      pages.Touch(next, frame % 7);
      next += frame % 7;
      {
        PERFKIT_ZONE(frames, "decode");
        pages.Touch(next, 3);
        next += 3;
      }
    }
    pages.Touch(next++, 1);
    frames.Mark();
    REQUIRE(frames.last().number == frame);
    const uint64_t touched = frame % 7 + 3 + 1;
    REQUIRE(testing::AreFaultsOf(frames.last().values[kFaults], touched, others_of_frame.Beside(touched)));
  }
  const uint64_t most = others.Beside(next);
  const std::vector<ZoneStats> zones = frames.zones();
  CheckLaw(zones, frames.size());
  const ZoneStats* const load = Find(zones, "load");
  const ZoneStats* const decode = Find(zones, "decode");
  REQUIRE(load != nullptr);
  REQUIRE(decode != nullptr);
  CHECK(testing::AreFaultsOf(decode->total[kFaults].value, 150, most));
  CHECK(decode->depth == 2);
  CHECK(decode->calls == 50);
  CHECK(decode->quantiles[kFaults].p50 == 3);
  CHECK(testing::AreFaultsOf(decode->quantiles[kFaults].max, 3, most));
  CHECK(testing::AreFaultsOf(load->self[kFaults].value, next - 150 - 50, most));
  CHECK(testing::AreFaultsOf(load->quantiles[kFaults].max, 9, most));
  CHECK(testing::AreFaultsOf(load->last.values[kFaults], 49 % 7 + 3, most));
  CHECK(testing::AreFaultsOf(zones[0].total[kFaults].value, next, most));
  CHECK(frames.history().size() == 50);
  CHECK(frames.history()[49].number == 49);
  CHECK(frames.history()[0].number == 0);
  CHECK(frames.history(FrameId{}).size() == 50);
  CHECK(frames.history(FrameId{}).back().number == 49);
}

// A frame of some work, a wait and a switch, between clocks of the system and the kernel's own task-clock.
void CheckTimedFrame(FrameCounter& frames, const CounterSet& task_clock) {
  // The frame begins between the first two moments, and ends between the last two.
  Snapshot before, begun, ending, after;
  const uint64_t before_ns = testing::NowNs();
  task_clock.Read(before);
  frames.Mark();
  task_clock.Read(begun);
  const uint64_t begun_ns = testing::NowNs();
  testing::Spin(2'000'000);
  testing::Sleep(5'000'000);
  testing::SwitchAway();
  const uint64_t ending_ns = testing::NowNs();
  task_clock.Read(ending);
  frames.Mark();
  task_clock.Read(after);
  const auto max_ns = static_cast<double>(testing::NowNs() - before_ns);
  const auto min_ns = static_cast<double>(ending_ns - begun_ns);
  const auto wall_ns = static_cast<double>(frames.last().wall_ns);
  CHECK(wall_ns >= 0.999 * min_ns);
  CHECK(wall_ns <= 1.001 * max_ns);
  const uint64_t clock = frames.last().values[kClock];
  CHECK(clock <= frames.last().wall_ns + 1000);
  CHECK(clock + clock / 1000 + 3000 >= task_clock.Difference(begun, ending, 0).value);
  CHECK(clock <= task_clock.Difference(before, after, 0).value + clock / 1000 + 3000);
  CHECK(frames.last().values[kSwitches] >= 1);
}

TEST_CASE("frames: clocks of a frame agree with the clocks outside", "[law]") {
  FrameCounter frames({.events = kEvents});
  if (!frames.reason(kClock).empty()) SKIP_TEST(std::string(frames.reason(kClock)));
  const auto task_clock =
      CounterSet::Open({event::kTaskClock}, Target::ThisThread(), {.only_path = ReadPath::kGroupRead});
  REQUIRE(task_clock.ok());
  for (int i = 0; i < 20; ++i) CheckTimedFrame(frames, *task_clock);
}

TEST_CASE("frames: nothing is allocated once everything was seen") {
#if PERFKIT_SANITIZED
  SKIP_TEST("a sanitizer owns operator new");
#endif
  FrameCounter frames({.events = kEvents, .hitch_budget = std::chrono::nanoseconds(1)});
  uint64_t hitches = 0;
  frames.OnHitch([&hitches](const Hitch&) { ++hitches; });
  const ZoneId made = frames.DefineZone("made at run time");
  uint64_t before = 0;
  for (int frame = 0; frame < 200; ++frame) {
    if (frame == 2) before = testing::allocations_so_far;
    {
      PERFKIT_ZONE(frames, "a");
      const FrameCounter::Zone zone(frames, made);
      frames.Enter({"engine"});
      frames.Leave();
    }
    if (frame > 100) {
      PERFKIT_ZONE(frames, "a zone that comes late");
    }
    frames.Mark();
    (void)frames.last();
  }
  CHECK(testing::allocations_so_far == before);
  CHECK(hitches == 200);  // the first zone began the first frame
}

TEST_CASE("frames: a refused thread allocates once and is refused once") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer owns operator new");
  FrameCounter frames({.events = kEvents, .max_threads = 0});
  uint64_t allocated = 0;
  std::thread([&] {
    { PERFKIT_ZONE(frames, "first"); }
    const uint64_t before = testing::allocations_so_far;
    for (int i = 0; i < 100; ++i) {
      PERFKIT_ZONE(frames, "zone");
    }
    allocated = testing::allocations_so_far - before;
  }).join();
  CHECK(allocated == 0);
  CHECK(frames.Stats().refused_threads == 1);
}

TEST_CASE("frames: what cannot be counted has a reason, and the rest counts") {
  FrameCounter frames({.events = {"page-faults", "no-such-event", "instructions"}});
  CHECK(std::string(frames.reason(1)).find("no-such-event") != std::string::npos);
  frames.Mark();
  { PERFKIT_ZONE(frames, "z"); }
  frames.Mark();
  CHECK((frames.last().missing >> 1 & 1) == 1);
  CHECK(((frames.last().missing >> 2 & 1) == 1) == !frames.reason(2).empty());
  const std::string report = frames.FormatZones();
  INFO(report);
  CHECK(report.find("not counted: no-such-event") != std::string::npos);
  CHECK(!frames.zones()[0].total[1].validity.counted());
  CHECK(frames.reason(99).empty());
}

TEST_CASE("frames: what lacks for the same reason is told once") {
  FrameCounter frames({.events = {"msr/nothing/", "page-faults", "msr/nothing/:u"}});
  frames.Mark();
  frames.Mark();
  const std::string report = frames.FormatZones();
  INFO(report);
  const size_t told = report.find("not counted: msr/nothing/, msr/nothing/:u: ");
  CHECK(told != std::string::npos);
  CHECK(report.find("not counted", told + 1) == std::string::npos);
}

TEST_CASE("frames: without any event there are still wall times", "[law]") {
  FrameCounter frames({});
  frames.Mark();
  {
    PERFKIT_ZONE(frames, "sleep");
    testing::Sleep(2'000'000);
  }
  frames.Mark();
  CHECK(frames.last().wall_ns >= 2'000'000);
  CHECK(Find(frames.zones(), "sleep")->wall_ns >= 2'000'000);
}

TEST_CASE("frames: only the thread that they belong to marks them") {
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  std::thread([&] { frames.Mark(); }).join();
  frames.Mark();
  CHECK(frames.Stats().frames == 1);
  CHECK(frames.Stats().foreign_marks == 1);
}

TEST_CASE("frames: workers' zones are folded in, living or ended") {
  FrameCounter frames({.events = kEvents});
  if (!frames.reason(kFaults).empty()) SKIP_TEST(std::string(frames.reason(kFaults)));
  frames.Mark();
  constexpr size_t kThreads = 4, kJobs = 20, kPages = 5;
  std::atomic<size_t> done{0};
  std::atomic<uint64_t> others{0};
  std::atomic<bool> end{false};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      const auto attached = frames.AttachThread("job");
      testing::FreshPages pages(kJobs * kPages);
      const testing::OtherFaults of_thread;
      for (size_t job = 0; job < kJobs; ++job) {
        PERFKIT_ZONE(frames, "job zone");
        PERFKIT_ZONE(frames, "inner");
        pages.Touch(job * kPages, kPages);
      }
      others += of_thread.Beside(kJobs * kPages);
      ++done;
      while (!end.load()) std::this_thread::yield();
    });
  }
  while (done.load() < kThreads) {
    frames.Mark();
    std::this_thread::yield();
  }
  frames.Mark();  // zones() excludes the frame under way
  const auto check = [&] {
    const std::vector<ZoneStats> zones = frames.zones();
    CheckLaw(zones, frames.size());
    const ZoneStats* const inner = Find(zones, "inner", "job");
    REQUIRE(inner != nullptr);
    CHECK(testing::AreFaultsOf(inner->total[kFaults].value, kThreads * kJobs * kPages, others));
    CHECK(inner->calls == kThreads * kJobs);
    CHECK(inner->threads == kThreads);
  };
  check();
  CHECK(frames.Stats().threads == 1 + kThreads);
  SlotTotals totals;
  frames.WorkerTotals(totals);
  CHECK(totals.values[kFaults] >= kThreads * kJobs * kPages);
  CHECK(totals.threads == kThreads);
  end.store(true);
  for (std::thread& thread : threads) thread.join();
  check();
  CHECK(frames.Stats().threads == 1);
}

TEST_CASE("frames: threads that come and go while reports are made and counting is switched", "[law]") {
  FrameCounter frames({.events = {"page-faults"}, .max_zones = 16});
  constexpr size_t kRounds = 30, kThreads = 3, kZones = 50;
  for (size_t round = 0; round < kRounds; ++round) {
    std::vector<std::thread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        for (size_t zone = 0; zone < kZones; ++zone) {
          PERFKIT_ZONE(frames, "work");
          PERFKIT_ZONE(frames, "inner");
          testing::Spin(100);
        }
      });
    }
    for (int i = 0; i < 5; ++i) {
      frames.Mark();
      CheckLaw(frames.zones(), frames.size());
      if (round % 3 == 2) frames.SetEnabled(i % 2 == 0);
    }
    for (std::thread& thread : threads) thread.join();
    frames.SetEnabled(true);
  }
  const std::vector<ZoneStats> zones = frames.zones();
  CheckLaw(zones, frames.size());
  const ZoneStats* const inner = Find(zones, "inner", "workers");
  REQUIRE(inner != nullptr);
  CHECK(inner->calls >= (kRounds - kRounds / 3) * kThreads * kZones);
  CHECK(inner->calls <= kRounds * kThreads * kZones);
  CHECK(frames.Stats().mismatched == 0);
}

size_t OpenDescriptors() {
  size_t count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

TEST_CASE("frames: off means that no event is open, and on counts again", "[law]") {
  const size_t before = OpenDescriptors();
  FrameCounter frames({.events = kEvents, .hitch_budget = std::chrono::seconds(10)});
  if (!frames.reason(kFaults).empty()) SKIP_TEST(std::string(frames.reason(kFaults)));
  std::atomic<int> stage{0};
  const auto wait_for = [&stage](int wanted) {
    while (stage.load() != wanted) std::this_thread::yield();
  };
  std::thread worker([&] {
    { PERFKIT_ZONE(frames, "w"); }
    stage.store(1);
    wait_for(2);
    {
      PERFKIT_ZONE(frames, "w");
      stage.store(3);
      wait_for(4);
    }
    stage.store(5);
    wait_for(6);
  });
  frames.Mark();
  wait_for(1);
  CHECK(OpenDescriptors() > before);
  frames.SetEnabled(false);  // the worker is outside: all goes at once
  CHECK(OpenDescriptors() == before);
  frames.Mark();
  { PERFKIT_ZONE(frames, "nothing"); }
  CHECK(frames.Stats().frames == 0);
  frames.SetEnabled(true);
  stage.store(2);
  wait_for(3);
  CHECK(OpenDescriptors() > before);
  frames.SetEnabled(false);  // the worker is inside a zone: its events go when it leaves
  stage.store(4);
  wait_for(5);
  CHECK(OpenDescriptors() == before);
  stage.store(6);
  worker.join();
  frames.SetEnabled(true);
  testing::FreshPages pages(30);
  uint64_t others = 0;
  for (size_t round = 0; round < 3; ++round) {  // the first ones may fault on the memory of the new counters, too
    const testing::OtherFaults of_round;
    frames.Mark();
    pages.Touch(10 * round, 10);
    frames.Mark();
    others = of_round.Beside(10);
  }
  INFO(frames.last().values[kFaults] << " faults");
  CHECK(testing::AreFaultsOf(frames.last().values[kFaults], 10, others));
  CHECK(Find(frames.zones(), "w", "workers")->calls == 2);
}

TEST_CASE("frames: a zone may be open while counting is switched off and on") {
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  {
    PERFKIT_ZONE(frames, "outer");
    frames.SetEnabled(false);
    frames.SetEnabled(true);
    { PERFKIT_ZONE(frames, "inner"); }
  }
  frames.Mark();
  CheckLaw(frames.zones(), frames.size());
  CHECK(frames.Stats().mismatched == 0);
  CHECK(Find(frames.zones(), "inner")->depth == 1);
}

TEST_CASE("frames: long names that agree at their beginning are zones of their own") {
  FrameCounter frames({.events = kEvents});
  const std::string name(100, 'n');
  const ZoneId first = frames.DefineZone(name + "1"), second = frames.DefineZone(name + "2");
  for (int thread = 0; thread < 2; ++thread) {
    std::thread([&] {
      const FrameCounter::Zone outer(frames, first);
      const FrameCounter::Zone inner(frames, first);
      { const FrameCounter::Zone a(frames, first); }
      { const FrameCounter::Zone b(frames, second); }
    }).join();
  }
  const std::vector<ZoneStats> zones = frames.zones();
  REQUIRE(Find(zones, name + "2", "workers") != nullptr);
  CHECK(Find(zones, name + "2", "workers")->calls == 2);
  CHECK(Find(zones, name + "1", "workers")->calls == 2);
  CheckLaw(zones, frames.size());
}

TEST_CASE("frames: mismatched leaves are counted, on every thread") {
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  frames.Leave();
  {
    PERFKIT_ZONE(frames, "outer");
    frames.Enter({"never left"});
  }
  frames.Mark();
  std::thread([&] {
    frames.Leave();
    frames.Enter({"w"});
    frames.Leave();
    frames.Leave();
  }).join();
  CHECK(frames.Stats().mismatched == 4);
  CheckLaw(frames.zones(), frames.size());
}

}  // namespace
}  // namespace perfkit
