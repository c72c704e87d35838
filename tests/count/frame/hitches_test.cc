// Hitches made on purpose: each has to be told with its true cause.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "perfkit/frame_counter.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using namespace std::chrono_literals;

// Frames of nothing, so that medians are small; then one of `work`. Its hitch, and how many there were.
template <class Work>
Hitch HitchOf(FrameCounter& frames, Work&& work) {
  Hitch last;
  frames.OnHitch([&last](const Hitch& hitch) { last = hitch; });
  frames.Mark();
  for (int i = 0; i < 20; ++i) {
    { PERFKIT_ZONE(frames, "usual"); }
    { PERFKIT_ZONE(frames, "culprit"); }
    frames.Mark();
  }
  {
    PERFKIT_ZONE(frames, "usual");
    PERFKIT_ZONE(frames, "culprit");  // below "usual" for the first time
    work();
  }
  frames.Mark();
  frames.OnHitch(nullptr);
  return last;
}

// The same, again until nothing came in between: neither another thread, by the kernel's counters, nor a hypervisor,
// whose part is in the task-clock of a frame that has next to nothing to do. A CPU that is taken away just before a
// sleep leaves less of it to wait for.
template <class Idle>
Hitch UndisturbedHitchOf(FrameCounter& frames, Idle&& idle) {
  Hitch hitch;
  for (int tries = 0; tries < 100; ++tries) {
    const uint64_t before = testing::PreemptionsByUsage();
    hitch = HitchOf(frames, idle);
    if (testing::PreemptionsByUsage() == before && frames.last().values[0] < 500'000) break;
  }
  return hitch;
}

TEST_CASE("hitches: a sleep is a wait", "[law]") {
  FrameCounter frames({.events = {"task-clock"}, .hitch_budget = 5ms});
  const Hitch hitch = UndisturbedHitchOf(frames, [] { testing::Sleep(20'000'000); });
  REQUIRE(hitch.wall_ns >= 20'000'000);
  CHECK(hitch.budget_ns == 5'000'000);
  CHECK(std::string(hitch.worst_zone) == "culprit");
  CHECK(hitch.worst_excess_ns >= 19'000'000);
  if (!hitch.switches_known) SKIP_TEST("no switch records here");
  INFO(hitch.cause);
  CHECK(hitch.waits >= 1);
  CHECK(hitch.waited_ns >= 19'000'000);
  CHECK(hitch.waited_ns <= hitch.wall_ns);
  CHECK(std::string(hitch.cause).find("waited") != std::string::npos);
  CHECK(!hitch.at_least);
}

TEST_CASE("hitches: no frame is over the longest budget") {
  FrameCounter frames({.events = {"page-faults"}, .hitch_budget = std::chrono::nanoseconds::max()});
  int hitches = 0;
  frames.OnHitch([&](const Hitch&) { ++hitches; });
  for (int i = 0; i < 3; ++i) frames.Mark();
  CHECK(hitches == 0);
}

TEST_CASE("hitches: a burst of page faults is told with addresses") {
  FrameCounter frames({.events = {"page-faults"}, .hitch_budget = 1us});
  testing::FreshPages pages(1000);
  const testing::OtherFaults others;
  const Hitch hitch = HitchOf(frames, [&] { pages.Touch(0, 1000); });
  const uint64_t beside = others.Beside(1000);
  if (!hitch.faults_known) SKIP_TEST("no fault records here");
  INFO(hitch.cause);
  CHECK(testing::AreFaultsOf(hitch.faults, 1000, beside));
  REQUIRE(hitch.fault_address_count == Hitch::kMaxAddresses);
  const auto first = reinterpret_cast<uint64_t>(pages.data());
  size_t inside = 0;
  for (const uint64_t address : hitch.fault_addresses) inside += address >= first && address < first + 1000 * 4096;
  CHECK(inside + beside >= Hitch::kMaxAddresses);
  CHECK(std::string(hitch.cause).find("page faults, from 0x") != std::string::npos);
}

TEST_CASE("hitches: more faults than the ring holds are still all counted") {
  FrameCounter frames({.events = {"page-faults"}, .hitch_budget = 1us});
  testing::FreshPages pages(5000);
  const testing::OtherFaults others;
  const Hitch hitch = HitchOf(frames, [&] { pages.Touch(0, 5000); });
  const uint64_t beside = others.Beside(5000);
  if (!hitch.faults_known) SKIP_TEST("no fault records here");
  CHECK(testing::AreFaultsOf(hitch.faults, 5000, beside));
}

// Binds the calling thread to one CPU while it lives.
class OnCpu {
 public:
  explicit OnCpu(int cpu) {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    bound = sched_setaffinity(0, sizeof(one), &one) == 0;
  }
  ~OnCpu() { sched_setaffinity(0, sizeof(before_), &before_); }
  bool bound;

 private:
  cpu_set_t before_;
};

int FirstCpu() {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof(allowed), &allowed);
  int cpu = 0;
  while (!CPU_ISSET(cpu, &allowed)) ++cpu;
  return cpu;
}

TEST_CASE("hitches: a competitor on the same CPU preempts", "[law]") {
  const int cpu = FirstCpu();
  const OnCpu here(cpu);
  if (!here.bound) SKIP_TEST("threads cannot be bound to a CPU here");
  std::atomic<bool> there{false}, stop{false};
  std::atomic<uint64_t> competitor_ns{0};
  std::thread competitor([&] {
    const OnCpu same(cpu);
    there = true;
    while (!stop.load(std::memory_order_relaxed)) {
      testing::Spin(1000);
      competitor_ns = testing::NowNs(CLOCK_THREAD_CPUTIME_ID);
    }
  });
  while (!there) std::this_thread::yield();
  FrameCounter frames({.events = {"task-clock"}, .hitch_budget = 20ms});
  const Hitch hitch = HitchOf(frames, [&] {
    const uint64_t until = testing::NowNs(CLOCK_THREAD_CPUTIME_ID) + 60'000'000, before = competitor_ns;
    while (testing::NowNs(CLOCK_THREAD_CPUTIME_ID) < until || competitor_ns < before + 6'000'000) testing::Spin(1000);
  });
  stop.store(true);
  competitor.join();
  if (!hitch.switches_known) SKIP_TEST("no switch records here");
  INFO(hitch.cause);
  CHECK(hitch.preemptions >= 1);
  CHECK(hitch.preempted_ns >= 5'000'000);
  CHECK(hitch.migrations == 0);
  CHECK(hitch.preempted_ns > hitch.waited_ns);
  CHECK(std::string(hitch.cause).starts_with("preempted"));
}

TEST_CASE("hitches: work has no other cause than itself", "[law]") {
  FrameCounter frames({.events = {"task-clock"}, .hitch_budget = 5ms});
  const Hitch hitch = HitchOf(frames, [] {
    const uint64_t until = testing::NowNs(CLOCK_THREAD_CPUTIME_ID) + 30'000'000;
    while (testing::NowNs(CLOCK_THREAD_CPUTIME_ID) < until) testing::Spin(1000);
  });
  if (!hitch.switches_known) SKIP_TEST("no switch records here");
  INFO(hitch.cause);
  CHECK(std::string(hitch.cause).find("itself") != std::string::npos);
  CHECK(hitch.wall_ns - hitch.preempted_ns - hitch.waited_ns >= 25'000'000);
}

TEST_CASE("hitches: where perf is forbidden, getrusage's numbers tell the cause", "[law]") {
  testing::FakeKernel fake;
  fake.FailAll(testing::Call::kPerfEventOpen, EACCES);
  FrameCounter frames({.events = {"page-faults", "task-clock", "context-switches"}, .hitch_budget = 1ms});
  REQUIRE(frames.path(0) == ReadPath::kUsage);
  const Hitch hitch = HitchOf(frames, [] { testing::Sleep(20'000'000); });
  INFO(hitch.cause);
  CHECK(!hitch.switches_known);
  REQUIRE(hitch.off_cpu_known);
  CHECK(hitch.off_cpu_ns == hitch.wall_ns - std::min(hitch.wall_ns, frames.last().values[1]));
  CHECK(hitch.switch_count_known);
  CHECK(hitch.switches == frames.last().values[2]);
  CHECK(hitch.switches >= 1);
  CHECK(hitch.faults_known);
  CHECK(hitch.faults == frames.last().values[0]);
  CHECK(!hitch.migrations_known);  // getrusage has none
  CHECK(std::string(hitch.cause).starts_with("off the CPU for "));
}

TEST_CASE("hitches: frames that were in time before it are not blamed on a hitch", "[law]") {
  FrameCounter frames({.events = {"context-switches"}, .hitch_budget = 25ms});
  constexpr size_t kPages = 1000;
  constexpr uint64_t kSleeps = 10, kAtBoundaries = 4;
  testing::FreshPages pages(kPages);
  uint64_t hitches = 0;
  Hitch last;
  frames.OnHitch([&](const Hitch& hitch) {
    ++hitches;
    last = hitch;
  });
  bool found = false;
  for (int tries = 0; tries < 50 && !found; ++tries) {
    pages.Forget();
    frames.Mark();
    hitches = 0;
    pages.Touch(0, kPages);
    for (uint64_t i = 0; i < kSleeps; ++i) testing::Sleep(1000);
    frames.Mark();
    if (hitches != 0) continue;  // a slow machine: this frame was late as well
    testing::Sleep(30'000'000);
    frames.Mark();
    found = true;
  }
  if (!found) SKIP_TEST("every frame is late here");
  INFO(last.cause);
  CHECK(last.frame == frames.last().number);
  if (last.faults_known) CHECK(last.faults < kPages / 2);
  // The kernel's own count, but for switches between its reading and that of the log at either end.
  if (last.switches_known && frames.reason(0).empty()) {
    CHECK(last.waits + last.preemptions <= frames.last().values[0] + kAtBoundaries);
  }
}

TEST_CASE("hitches: what a callback does counts in the next frame", "[law]") {
  FrameCounter frames({.events = {"task-clock"}, .hitch_budget = 1ns});
  uint64_t waits = 0, waited_ns = 0;
  bool known = true;
  int hitches = 0;
  frames.OnHitch([&](const Hitch& hitch) {
    waits += hitch.waits;
    waited_ns += hitch.waited_ns;
    known = known && hitch.switches_known;
    if (hitches++ > 0) CHECK(hitch.wall_ns >= 1'000'000);
    testing::Sleep(1'000'000);
  });
  for (int i = 0; i < 21; ++i) frames.Mark();
  CHECK(hitches == 20);
  if (!known) SKIP_TEST("no switch records here");
  CHECK(waits >= 1);
  CHECK(waited_ns > 0);
}

TEST_CASE("hitches: a callback may replace itself while it runs") {
  FrameCounter frames({.events = {"task-clock"}, .hitch_budget = 1ns});
  int first = 0, second = 0;
  bool lived = false;
  {
    const auto owned = std::make_shared<int>(0);
    frames.OnHitch([&, owned](const Hitch&) {
      const std::weak_ptr<int> watched = owned;
      frames.OnHitch([&](const Hitch&) { ++second; });
      lived = !watched.expired();
      ++first;
    });
  }
  for (int i = 0; i < 4; ++i) frames.Mark();
  CHECK(lived);
  CHECK(first == 1);
  CHECK(second == 2);
}

TEST_CASE("hitches: without a budget there are none, and no ring is kept", "[law]") {
  FrameCounter frames({.events = {"task-clock"}});
  const Hitch hitch = HitchOf(frames, [] { testing::Sleep(1'000'000); });
  CHECK(hitch.wall_ns == 0);
  CHECK(frames.hitches().empty());
}

}  // namespace
}  // namespace perfkit
