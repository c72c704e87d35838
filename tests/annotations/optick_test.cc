// A loop that is annotated with Optick's macros.
#include "perfkit/optick.h"

#include <catch2/catch.hpp>
#include <string>
#include <thread>

#include "tests/annotations/oracle.h"

namespace perfkit {
namespace {

using testing::AnnotatedRun;
using testing::Engine;
using testing::SumsOf;

constexpr int kOptickFrames = 40;

// Its name has its class, as in Optick.
class World {
 public:
  explicit World(Engine& engine) : engine_(engine) {}

  void Step(int frame) {
    OPTICK_EVENT();
    OPTICK_TAG("frame", frame, Nothing());
    engine_.Did(__PRETTY_FUNCTION__, 1);
    if (frame % 3 == 0) return;
    Think(frame);
  }

 private:
  static int Nothing() {
    FAIL("an argument of a macro that does nothing was evaluated");
    return 0;
  }
  void Think(int frame) {
    OPTICK_CATEGORY("think", Optick::Category::AI);
    engine_.Did("think", 2);
    for (int agent = 0; agent < frame % 4; ++agent) {
      OPTICK_EVENT("agent", Optick::Category::AI);
      engine_.Did("agent", 1);
      OPTICK_EVENT("path");
      engine_.Did("path", 1);
    }
    const std::string name = "level " + std::to_string(frame % 2);
    OPTICK_EVENT_DYNAMIC(name.c_str());
    engine_.Did(name, 1);
  }

  Engine& engine_;
};

void DrawScene(Engine& engine) {
  OPTICK_PUSH("draw");
  engine.Did("draw", 1);
  OPTICK_PUSH_DYNAMIC(std::string("shadows").c_str());
  engine.Did("shadows", 2);
  OPTICK_POP();
  {
    OPTICK_GPU_CONTEXT(buffer);
    OPTICK_GPU_EVENT("opaque");
    engine.Did("opaque", 1);
  }
  OPTICK_POP();
}

TEST_CASE("optick: calls and faults of each zone are the program's own") {
  AnnotatedRun run;
  if (!run.is_counted()) SKIP_TEST(std::string(run.frames.reason(testing::kFaults)));
  OPTICK_APP("game");
  Engine engine(4096);
  World world(engine);
  const testing::OtherFaults others;
  for (int frame = 0; frame < kOptickFrames; ++frame) {
    OPTICK_FRAME("MainThread");
    world.Step(frame);
    DrawScene(engine);
    OPTICK_UPDATE();
  }
  OPTICK_FRAME("MainThread", Optick::FrameType::CPU);
  engine.Check(SumsOf(run.frames, ""), others.Beside(engine.touched()));
  CHECK(run.frames.Stats().mismatched == 0);
  CHECK(run.frames.Stats().frames == kOptickFrames);
}

TEST_CASE("optick: threads have their names, and frames that are not the CPU's are apart") {
  AnnotatedRun run;
  if (!run.is_counted()) SKIP_TEST(std::string(run.frames.reason(testing::kFaults)));
  OPTICK_FRAME("MainThread");
  for (const char* name : {"render", "loader"}) {
    Engine engine(512);
    World world(engine);
    uint64_t beside = 0;
    std::thread([&] {
      OPTICK_THREAD(name);
      const testing::OtherFaults others;
      for (int frame = 0; frame < 5; ++frame) {
        if (*name == 'r') OPTICK_FRAME_EVENT(Optick::FrameType::Render);
        world.Step(frame);
      }
      if (*name == 'r') OPTICK_FRAME_FLIP(Optick::FrameType::Render, -1);
      beside = others.Beside(engine.touched());
    }).join();
    engine.Check(SumsOf(run.frames, name), beside);
  }
  std::thread([] {
    OPTICK_START_THREAD("pool");
    { OPTICK_EVENT("job"); }
    OPTICK_STOP_THREAD();
    { OPTICK_EVENT("job"); }
  }).join();
  OPTICK_FRAME_FLIP();
  CHECK(run.frames.last(FrameId{1}).number == 4);
  CHECK(run.frames.last().number == 0);
  CHECK(SumsOf(run.frames, "pool")["job"].calls == 1);
  CHECK(SumsOf(run.frames, "workers")["job"].calls == 1);
}

TEST_CASE("optick: the thread that marks the main frames remains that thread") {
  AnnotatedRun run;
  if (!run.is_counted()) SKIP_TEST(std::string(run.frames.reason(testing::kFaults)));
  OPTICK_FRAME("MainThread");
  OPTICK_START_THREAD("pool");
  OPTICK_STOP_THREAD();
  for (int frame = 0; frame < 2; ++frame) {
    { OPTICK_EVENT("job"); }
    OPTICK_FRAME_FLIP();
  }
  CHECK(SumsOf(run.frames, "")["job"].calls == 2);
  CHECK(SumsOf(run.frames, "workers").empty());
}

TEST_CASE("optick: frames have the name of their type, without the blanks around it") {
  AnnotatedRun run;
  OPTICK_FRAME_FLIP(Optick::FrameType::Render , -1);
  OPTICK_FRAME_FLIP(Optick::FrameType::Render, -1);
  CHECK(run.frames.last(FrameId{1}).number == 0);
  CHECK(run.frames.history(FrameId{1}).size() == 1);
}

}  // namespace
}  // namespace perfkit
