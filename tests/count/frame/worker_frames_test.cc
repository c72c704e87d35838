// Workers' zones by the frames of the marking thread, and workers that come one after the other.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "perfkit/frame_counter.h"
#include "tests/count/frame/zones.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

TEST_CASE("frames: a worker's zones are summed by the main frames") {
  FrameCounter frames({.events = kEvents});
  if (!frames.reason(kFaults).empty()) SKIP_TEST(std::string(frames.reason(kFaults)));
  constexpr uint64_t kFrames = 20;
  constexpr size_t kJobs = 3, kPages = 4;
  std::atomic<uint64_t> asked{0}, done{0};
  std::thread worker([&] {
    testing::FreshPages pages(kFrames * kJobs * kPages);
    for (uint64_t frame = 0; frame < kFrames; ++frame) {
      while (asked.load() == frame) std::this_thread::yield();
      for (size_t job = 0; job < kJobs; ++job) {
        PERFKIT_ZONE(frames, "job");
        pages.Touch((frame * kJobs + job) * kPages, kPages);
      }
      ++done;
    }
  });
  frames.Mark();
  for (uint64_t frame = 0; frame < kFrames; ++frame) {
    ++asked;
    while (done.load() == frame) std::this_thread::yield();
    frames.Mark();
  }
  worker.join();
  const std::vector<ZoneStats> zones = frames.zones();
  const ZoneStats* const job = Find(zones, "job", "workers");
  REQUIRE(job != nullptr);
  CHECK(job->frames == kFrames);
  CHECK(job->calls == kFrames * kJobs);
  CHECK(job->quantiles[kFaults].count == kFrames);
  CHECK(testing::AreFaultsOf(job->quantiles[kFaults].p50, kJobs * kPages));
  CHECK(job->last.number == kFrames - 1);
}

TEST_CASE("frames: what a worker does besides zones adds no frames to them") {
  FrameCounter frames({.events = {"page-faults"}});
  const FrameId audio = frames.DefineFrame("audio");
  frames.Mark();
  std::atomic<int> turn{0};
  std::thread owner([&] {
    const auto attached = frames.AttachThread("audio");  // not in the worker's group
    frames.Mark(audio);
    turn = 1;
    while (turn.load() != 10) std::this_thread::yield();
  });
  while (turn.load() != 1) std::this_thread::yield();
  std::thread worker([&] {
    for (int i = 0; i < 4; ++i) {
      if (i == 0) {
        PERFKIT_ZONE(frames, "job");
      }
      frames.Mark(audio);  // another thread's: ignored
      turn = 2 + 2 * i;
      while (turn.load() != 3 + 2 * i) std::this_thread::yield();
    }
  });
  for (int i = 0; i < 4; ++i) {
    while (turn.load() != 2 + 2 * i) std::this_thread::yield();
    frames.Mark();
    turn = 3 + 2 * i;
  }
  worker.join();
  const std::vector<ZoneStats> zones = frames.zones();
  turn = 10;
  owner.join();
  CHECK(frames.Stats().foreign_marks == 4);
  const ZoneStats* const job = Find(zones, "job", "workers");
  REQUIRE(job != nullptr);
  CHECK(job->frames == 1);
  CHECK(zones[job->parent].frames == 1);
}

TEST_CASE("frames: a report in the middle of a frame does not cut the workers' frames in two") {
  FrameCounter frames({.events = {"page-faults"}});
  std::atomic<int> turn{-1};
  std::thread worker([&] {
    for (int i = 0; i < 3; ++i) {
      while (turn.load() != 2 * i) std::this_thread::yield();
      { PERFKIT_ZONE(frames, "job"); }
      ++turn;
    }
    while (turn.load() != 6) std::this_thread::yield();
  });
  frames.Mark();
  const auto run_job = [&](int i) {
    turn = 2 * i;
    while (turn.load() != 2 * i + 1) std::this_thread::yield();
  };
  run_job(0);
  frames.Mark();
  run_job(1);
  const std::vector<ZoneStats> within = frames.zones();
  CHECK_FALSE(frames.FormatZones().empty());
  run_job(2);
  frames.Mark();
  const std::vector<ZoneStats> ended = frames.zones();
  turn = 6;
  worker.join();
  REQUIRE(Find(within, "job", "workers") != nullptr);
  CHECK(Find(within, "job", "workers")->calls == 1);
  CHECK(Find(ended, "job", "workers")->calls == 3);
  CHECK(Find(ended, "job", "workers")->frames == 2);
  CHECK(Find(ended, "job", "workers")->last.number == 1);
}

TEST_CASE("frames: any number of workers may come one after the other") {
  FrameCounter frames({.events = {"page-faults"}, .max_zones = 4, .max_threads = 2});
  constexpr uint64_t kThreads = 300;
  for (uint64_t i = 0; i < kThreads; ++i) {
    std::thread([&] { PERFKIT_ZONE(frames, "job"); }).join();
  }
  CHECK(frames.Stats().refused_threads == 0);
  CHECK(frames.Stats().threads == 1);
  CHECK(Find(frames.zones(), "job", "workers")->calls == kThreads);
}

TEST_CASE("frames: a zone that a thread entered when it was refused may be left when there is room for it") {
  FrameCounter frames({.events = {"page-faults"}, .max_threads = 1});
  frames.Mark();
  std::atomic<bool> attached{false}, refused{false};
  std::thread first([&] {
    const auto thread = frames.AttachThread("first");
    attached = true;
    while (!refused) std::this_thread::yield();
  });
  while (!attached) std::this_thread::yield();
  std::thread([&] {
    frames.Enter({"refused"});
    refused = true;
    first.join();
    frames.Leave();
    frames.Enter({"counted"});
    frames.Leave();
  }).join();
  frames.Mark();
  frames.Mark();
  CHECK(frames.Stats().mismatched == 0);
  REQUIRE(Find(frames.zones(), "counted", "workers") != nullptr);
  CHECK(Find(frames.zones(), "counted", "workers")->calls == 1);
}

}  // namespace
}  // namespace perfkit
