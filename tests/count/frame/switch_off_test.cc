// Counting switched off while a worker is inside zones that it enters and leaves by calls.
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "perfkit/frame_counter.h"
#include "tests/count/frame/zones.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/fork_storm.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// Runs the steps of two threads in turn: each waits for its own.
class Turns {
 public:
  void Wait(int turn) const {
    while (turn_.load() != turn) std::this_thread::yield();
  }
  void Next() { ++turn_; }

 private:
  std::atomic<int> turn_{0};
};

TEST_CASE("frames: a worker that leaves its zones while counting is off gives its events back, and counts again") {
  const int before = testing::OpenEvents();
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  Turns turns;
  std::thread worker([&] {
    frames.Enter({"outer"});
    frames.Enter({"inner"});
    turns.Next();
    turns.Wait(2);  // off
    frames.Enter({"off"});
    frames.Leave();
    frames.Leave();
    turns.Next();
    turns.Wait(4);
    frames.Leave();  // outer
    turns.Next();
    turns.Wait(6);  // on
    frames.Enter({"again"});
    frames.Leave();
    turns.Next();
    turns.Wait(8);
  });
  turns.Wait(1);
  frames.SetEnabled(false);
  turns.Next();
  turns.Wait(3);
  turns.Next();
  turns.Wait(5);
  CHECK(testing::OpenEvents() == before);
  frames.SetEnabled(true);
  frames.Mark();
  turns.Next();
  turns.Wait(7);
  frames.Mark();
  const std::vector<ZoneStats> zones = frames.zones();
  CHECK(Find(zones, "again", "workers")->depth == 1);
  CHECK(Find(zones, "again", "workers")->calls == 1);
  CHECK(Find(zones, "outer", "workers")->calls == 1);
  CHECK(Find(zones, "inner", "workers")->calls == 1);
  CHECK(Find(zones, "off", "workers") == nullptr);
  CHECK(frames.Stats().mismatched == 0);
  CheckLaw(zones, frames.size());
  turns.Next();
  worker.join();
}

TEST_CASE("frames: counting may be switched any number of times while a worker is inside its zones") {
  const int before = testing::OpenEvents();
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  Turns turns;
  std::thread worker([&] {
    frames.Enter({"outer"});
    frames.Enter({"inner"});
    for (int round = 0; round < 3; ++round) {
      turns.Next();
      turns.Wait(4 * round + 2);  // off
      frames.Enter({"off"});
      turns.Next();
      turns.Wait(4 * round + 4);  // on
      frames.Leave();
    }
    frames.Leave();
    frames.Leave();
    turns.Next();
    turns.Wait(14);
  });
  for (int round = 0; round < 3; ++round) {
    turns.Wait(4 * round + 1);
    frames.SetEnabled(false);
    turns.Next();
    turns.Wait(4 * round + 3);
    frames.SetEnabled(true);
    turns.Next();
  }
  turns.Wait(13);
  frames.SetEnabled(false);
  CHECK(testing::OpenEvents() == before);
  frames.SetEnabled(true);
  const std::vector<ZoneStats> zones = frames.zones();
  CHECK(Find(zones, "outer", "workers")->calls == 1);
  CHECK(Find(zones, "inner", "workers")->calls == 1);
  CHECK(Find(zones, "off", "workers") == nullptr);
  CHECK(frames.Stats().mismatched == 0);
  turns.Next();
  worker.join();
}

TEST_CASE("frames: a frame of a worker's own sequence that is cut by switching off leaves nothing in the next",
          "[law]") {
  FrameCounter frames({.events = kEvents});
  const FrameId audio = frames.DefineFrame("audio");
  frames.Mark();
  Turns turns;
  const bool inside = GENERATE(false, true);
  CAPTURE(inside);
  std::thread worker([&] {
    testing::FreshPages pages(110);
    frames.Mark(audio);
    frames.Mark(audio);
    frames.Enter({"mix"});
    pages.Touch(0, 100);
    if (!inside) frames.Leave();
    turns.Next();
    turns.Wait(2);  // off
    if (inside) frames.Leave();
    turns.Next();
    turns.Wait(4);  // on
    frames.Mark(audio);
    frames.Enter({"mix"});
    pages.Touch(100, 1);
    frames.Leave();
    frames.Mark(audio);
    turns.Next();
    turns.Wait(6);
  });
  turns.Wait(1);
  frames.SetEnabled(false);
  turns.Next();
  turns.Wait(3);
  frames.SetEnabled(true);
  frames.Mark();
  turns.Next();
  turns.Wait(5);
  const std::vector<ZoneStats> zones = frames.zones();
  turns.Next();
  worker.join();
  CheckLaw(zones, frames.size());
  REQUIRE(Find(zones, "mix", "workers") != nullptr);
  CHECK(Find(zones, "mix", "workers")->calls == 1);
}

std::function<void()> at_next_close;

int CloseAfterHook(int fd) {
  if (at_next_close) std::exchange(at_next_close, nullptr)();
  return sys::kLinux.close(fd);
}

TEST_CASE("frames: a zone that is left while counting is being switched off is left") {
  testing::FakeKernel kernel;
  kernel.below().close = &CloseAfterHook;
  const int before = testing::OpenEvents();
  FrameCounter frames({.events = kEvents});
  frames.Mark();
  Turns turns;
  std::thread worker([&] {
    frames.Enter({"outer"});
    turns.Next();
    turns.Wait(2);  // enabled() is false already, and SetEnabled has not returned
    frames.Leave();
    turns.Next();
    turns.Wait(4);  // on
    frames.Enter({"again"});
    frames.Leave();
    turns.Next();
    turns.Wait(6);
  });
  turns.Wait(1);
  bool was_enabled = true;
  at_next_close = [&] {
    was_enabled = frames.enabled();
    turns.Next();
    turns.Wait(3);
  };
  frames.SetEnabled(false);
  CHECK(!was_enabled);
  CHECK(testing::OpenEvents() == before);
  frames.SetEnabled(true);
  frames.Mark();
  turns.Next();
  turns.Wait(5);
  frames.Mark();
  const std::vector<ZoneStats> zones = frames.zones();
  CHECK(frames.Stats().mismatched == 0);
  turns.Next();
  worker.join();
  REQUIRE(Find(zones, "outer", "workers") != nullptr);
  CHECK(Find(zones, "outer", "workers")->calls == 1);
  REQUIRE(Find(zones, "again", "workers") != nullptr);
  CHECK(Find(zones, "again", "workers")->depth == 1);
}

TEST_CASE("frames: whenever counting is switched, no zone is left over") {
  const int before = testing::OpenEvents();
  FrameCounter frames({.events = {"page-faults"}});
  frames.Mark();
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> rounds{0};
  std::thread worker([&] {
    for (; !stop.load(); ++rounds) {
      frames.Enter({"zone"});
      frames.Leave();
    }
  });
  const auto wait_for_rounds = [&](uint64_t more) {
    for (const uint64_t from = rounds.load(); rounds.load() < from + more;) std::this_thread::yield();
  };
  int left_open = 0;
  for (int i = 0; i < 20; ++i) {
    wait_for_rounds(10);
    frames.SetEnabled(false);
    wait_for_rounds(2);  // The one in which it was switched off is over.
    left_open += testing::OpenEvents() != before;
    frames.SetEnabled(true);
  }
  stop = true;
  worker.join();
  CHECK(left_open == 0);
  for (const ZoneStats& zone : frames.zones()) CHECK(zone.depth <= 1);
}

TEST_CASE("frames: a dropped zone in which counting is switched off and on is no mistake") {
  for (const size_t max_depth : {size_t{0}, size_t{1}, size_t{2}}) {
    FrameCounter frames({.events = kEvents, .max_depth = max_depth});
    frames.Mark();
    {
      PERFKIT_ZONE(frames, "outer");
      PERFKIT_ZONE(frames, "inner");
      frames.SetEnabled(false);
      frames.SetEnabled(true);
    }
    frames.Mark();
    frames.Mark();
    CAPTURE(max_depth);
    CHECK(frames.Stats().mismatched == 0);
  }
}

}  // namespace
}  // namespace perfkit
