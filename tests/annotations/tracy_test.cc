// A loop that is annotated with Tracy's macros, without Tracy.
#include "perfkit/tracy.h"

#include <catch2/catch.hpp>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/annotations/oracle.h"

namespace perfkit {
namespace {

using testing::AnnotatedRun;
using testing::Engine;
using testing::SumsOf;

constexpr int kFrames = 40;

TracyLockable(std::mutex, world_lock);
TracySharedLockableN(std::shared_mutex, asset_lock, "assets");

int Never() {
  FAIL("an argument of a macro that does nothing was evaluated");
  return 0;
}

void Solve(Engine& engine, int depth) {
  ZoneScopedN("solve");
  engine.Did("solve", 2);
  ZoneText("text", static_cast<size_t>(Never()));
  ZoneValue(Never());
  if (depth == 0) return;
  ZoneNameF("%d", Never());
  Solve(engine, depth - 1);
}

// Returns early from some frames.
bool Simulate(Engine& engine, int frame) {
  ZoneScoped;
  engine.Did("Simulate", 1);
  if (frame % 4 == 0) return false;
  Solve(engine, frame % 3);
  std::lock_guard<LockableBase(std::mutex)> lock(world_lock);
  LockMark(world_lock);
  return true;
}

// Two zones in one scope, and more of them that are off.
void Draw(Engine& engine, int frame) {
  ZoneNamedN(outer, "draw", true);
  engine.Did("draw", 1);
  ZoneNamedNC(inner, "draw opaque", 0xff0000, true);
  ZoneTextV(inner, "text", 4);
  engine.Did("draw opaque", 1);
  ZoneNamedN(odd, "draw odd", frame % 2 != 0);
  engine.Touch(frame % 2 != 0 ? "draw odd" : "draw opaque", 1);
  if (frame % 2 != 0) engine.Did("draw odd", 0);
  if (ZoneIsActiveV(outer)) Never();
}

void LoadAssets(Engine& engine, int frame) {
  const std::string name = "asset " + std::to_string(frame % 3);
  ZoneTransientN(zone, name.c_str(), true);
  engine.Did(name, 3);
  {
    ZoneScopedNCS("parse", 0xff, 8);
    engine.Did("parse", 1);
    {
      ZoneScopedNS("parse line", 4);
      engine.Did("parse line", 1);
    }
  }
  TracyPlot("assets", Never());
  TracyMessage("loaded", static_cast<size_t>(Never()));
  TracyAllocN(&engine, 8, "heap");
}

void RunFrame(Engine& engine, int frame) {
  Simulate(engine, frame);
  Draw(engine, frame);
  LoadAssets(engine, frame);
}

TEST_CASE("tracy: calls and faults of each zone are the program's own") {
  AnnotatedRun run;
  if (!run.is_counted()) SKIP_TEST(std::string(run.frames.reason(testing::kFaults)));
  Engine engine(4096);
  const testing::OtherFaults others;
  FrameMark;
  for (int frame = 0; frame < kFrames; ++frame) {
    RunFrame(engine, frame);
    FrameMark;
    REQUIRE(run.frames.last().number == static_cast<uint64_t>(frame));
  }
  engine.Check(SumsOf(run.frames, ""), others.Beside(engine.touched()));
  CHECK(run.frames.Stats().mismatched == 0);
  CHECK(run.frames.Stats().frames == kFrames);
}

TEST_CASE("tracy: zones of threads that mark no frames are under the names of the threads") {
  AnnotatedRun run;
  if (!run.is_counted()) SKIP_TEST(std::string(run.frames.reason(testing::kFaults)));
  FrameMark;
  for (const char* name : {"loader", "physics"}) {
    Engine engine(512);
    uint64_t beside = 0;
    std::thread([&] {
      tracy::SetThreadName(name);
      tracy::SetThreadName("later");  // It has a name.
      const testing::OtherFaults others;
      for (int frame = 0; frame < 10; ++frame) RunFrame(engine, frame);
      beside = others.Beside(engine.touched());
    }).join();
    engine.Check(SumsOf(run.frames, name), beside);
  }
  CHECK(SumsOf(run.frames, "later").empty());
  CHECK(SumsOf(run.frames, "workers").empty());
}

TEST_CASE("tracy: threads that run at once do not mix") {
  AnnotatedRun run;
  if (!run.is_counted()) SKIP_TEST(std::string(run.frames.reason(testing::kFaults)));
  constexpr size_t kThreads = 4;
  constexpr int kRounds = 25;
  std::vector<std::unique_ptr<Engine>> engines;
  std::vector<uint64_t> beside(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) engines.push_back(std::make_unique<Engine>(1024));
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&engine = *engines[i], &others_of = beside[i], name = std::to_string(i)] {
      tracy::SetThreadName(name.c_str());
      const testing::OtherFaults others;
      for (int round = 0; round < kRounds; ++round) {
        RunFrame(engine, round);
        FrameMarkNamed(name.c_str());
      }
      others_of = others.Beside(engine.touched());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kThreads; ++i) engines[i]->Check(SumsOf(run.frames, std::to_string(i)), beside[i]);
  for (uint32_t id = 1; id <= kThreads; ++id) CHECK(run.frames.last(FrameId{id}).number == kRounds - 2);
  CHECK(run.frames.Stats().foreign_marks == 0);
}

TEST_CASE("tracy: each set of frames is marked under its own name") {
  AnnotatedRun run;
  for (int mark = 0; mark < 8; ++mark) {
    FrameMark;
    FrameMarkNamed("audio");
    if (mark % 2 == 0) FrameMarkNamed("network");
  }
  const FrameId audio = run.frames.DefineFrame("after"), first{1}, second{2};
  CHECK(audio.index == 3);
  CHECK(run.frames.last().number == 6);
  CHECK(run.frames.last(first).number == 6);
  CHECK(run.frames.last(second).number == 2);
}

TEST_CASE("tracy: without a FrameCounter the macros do nothing, and a later one starts afresh") {
  UseAnnotations(nullptr);
  Engine engine(512);
  tracy::SetThreadName(nullptr);
  FrameMark;
  RunFrame(engine, 1);
  FrameMarkNamed("audio");
  FrameMarkStart("job");
  FrameMarkEnd("job");
  AnnotatedRun run;
  FrameMark;
  FrameMark;
  CHECK(SumsOf(run.frames, "").empty());
  CHECK(run.frames.Stats().zones == 0);
}

}  // namespace
}  // namespace perfkit
