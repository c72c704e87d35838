// Zones in signal handlers: each is either counted or dropped, and the sums of the zones around it stay whole.
#include <sys/mman.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "tests/count/frame/zones.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/signal_storm.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// What the handler works on, and how often it did.
FrameCounter* counter = nullptr;
std::atomic<uint64_t> handled{0};

void EnterZones() {
  if (counter == nullptr) return;
  { PERFKIT_ZONE(*counter, "handler"); }
  counter->Enter({"handler"});
  counter->Leave();
  handled.fetch_add(2);
}

uint64_t CallsOf(const std::vector<ZoneStats>& zones, std::string_view name, std::string_view thread) {
  uint64_t calls = 0;
  for (const ZoneStats& zone : zones) {
    if (zone.name == name && zone.thread == thread) calls += zone.calls;
  }
  return calls;
}

// Interrupts every system call, and so every read of the counters, as a signal may.
ssize_t InterruptedRead(int fd, void* to, size_t size) {
  static thread_local bool inside = false;
  if (!inside) {
    inside = true;
    EnterZones();
    inside = false;
  }
  return sys::kLinux.read(fd, to, size);
}

TEST_CASE("frames: zones entered within reads of the counters are counted or dropped and spoil nothing") {
  testing::FakeKernel fake;
  fake.below().read = InterruptedRead;
  FrameCounter frames({.events = kEvents, .only_path = ReadPath::kGroupRead});
  handled = 0;
  frames.Mark();
  const auto run = [&] {
    for (int i = 0; i < 10; ++i) {
      PERFKIT_ZONE(frames, "outer");
      { PERFKIT_ZONE(frames, "inner"); }
      frames.Enter({"plain"});
      frames.Leave();
      frames.Mark();  // ignored on a worker
    }
  };
  run();  // all zones have been seen, and the worker's thread is attached, before handlers come
  std::string thread;
  SECTION("on the marking thread") {
    counter = &frames;
    run();
    counter = nullptr;
  }
  SECTION("on a worker") {
    thread = "workers";
    std::thread([&] {
      run();
      counter = &frames;
      run();
      counter = nullptr;
    }).join();
  }
  frames.Mark();
  const std::vector<ZoneStats> zones = frames.zones();
  CheckLaw(zones, frames.size());
  CHECK(CallsOf(zones, "outer", thread) == 20);
  CHECK(CallsOf(zones, "inner", thread) == 20);
  CHECK(CallsOf(zones, "plain", thread) == 20);
  CHECK(CallsOf(zones, "handler", thread) + frames.Stats().dropped == handled);
  CHECK(frames.Stats().mismatched == 0);
}

TEST_CASE("frames: zones of signals that come at any time are counted or dropped and spoil nothing", "[law]") {
  if (testing::kHandlersUnseen) SKIP_TEST("ThreadSanitizer does not see handlers");
  FrameCounter frames({.events = kEvents});
  handled = 0;
  frames.Mark();
  { PERFKIT_ZONE(frames, "outer"); }
  counter = &frames;
  uint64_t rounds = 0;
  {
    const testing::SignalStorm storm(EnterZones);
    for (; storm.handled() < 500; ++rounds) {
      PERFKIT_ZONE(frames, "outer");
      for (int i = 0; i < 10; ++i) {
        PERFKIT_ZONE(frames, "inner");
      }
      if (rounds % 16 == 0) frames.Mark();
    }
  }
  counter = nullptr;
  frames.Mark();
  const std::vector<ZoneStats> zones = frames.zones();
  CheckLaw(zones, frames.size());
  CHECK(CallsOf(zones, "outer", "") == rounds + 1);
  CHECK(CallsOf(zones, "inner", "") == 10 * rounds);
  CHECK(CallsOf(zones, "handler", "") + frames.Stats().dropped == handled);
  CHECK(frames.Stats().mismatched == 0);
}

// No memory for new zones and distributions, and a signal whenever some would be needed. handled: the handlers' zones;
// refused: those without counts.
std::atomic<uint64_t> refused{0};

void* InterruptedMmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  if ((flags & MAP_ANONYMOUS) == 0) return sys::kLinux.mmap(address, size, protection, flags, fd, offset);
  if (counter != nullptr) {
    FrameCounter::Zone zone(*counter, {"handler"});
    FrameRecord counts;
    zone.End(counts);
    handled.fetch_add(1);
    if (counts.missing == ~0u) refused.fetch_add(1);
  }
  errno = ENOMEM;
  return MAP_FAILED;
}

// The frames that wait are added to distributions, which take their memory from where a new zone takes its own.
TEST_CASE("frames: a zone of a handler that interrupts a read of the results is dropped") {
  std::vector<std::string> names;
  for (int i = 0; i < 400; ++i) names.push_back("zone " + std::to_string(i));
  testing::FakeKernel fake;
  FrameCounter frames({.events = kEvents, .max_zones = 1000});
  fake.below().mmap = InterruptedMmap;
  handled = 0;
  frames.Mark();
  { PERFKIT_ZONE(frames, "handler"); }
  for (int frame = 0; frame < 20; ++frame) {  // takes all memory
    for (const std::string& name : names) {
      const FrameCounter::Zone zone(frames, {name.c_str()});
    }
    frames.Mark();
  }
  counter = &frames;
  frames.history();
  counter = nullptr;
  CHECK(handled > 0);
  CHECK(refused == handled);
  const FrameStats stats = frames.Stats();
  CHECK(stats.dropped > handled);
  CHECK(stats.unplaced > 0);
  CheckLaw(frames.zones(), frames.size());
}

}  // namespace
}  // namespace perfkit
