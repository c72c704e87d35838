// The logs of a recording begin when their threads are attached, and end with them, once each.
#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "perfkit/frame_counter.h"
#include "src/count/frame/frame_counter_impl.h"
#include "src/count/frame/frame_recording.h"

namespace perfkit::count {
namespace {

std::unique_ptr<FrameRecording> MustRecord(FrameCounter& frames) {
  auto recording = FrameCounterImpl::Of(frames)->Record();
  REQUIRE(recording.ok());
  return *std::move(recording);
}

TEST_CASE("each thread's log has one end, also while counting is off and with the FrameCounter", "[frame][recording]") {
  std::optional<FrameCounter> frames(FrameOptions{.events = {"page-faults"}});
  const std::unique_ptr<FrameRecording> recording = MustRecord(*frames);
  frames->Mark();
  std::map<uint64_t, int> ends;
  const auto read = [&] {
    recording->Read([&](const FrameEvent& event) { ends[event.thread] += event.kind == ZoneRecordKind::kEnd; });
  };
  std::atomic<int> turn{0};
  const auto in_turn = [&](int mine) {
    while (turn.load() != mine) std::this_thread::yield();
  };
  std::thread ends_while_off([&] {
    { PERFKIT_ZONE(*frames, "zone"); }
    turn = 1;
    in_turn(2);
  });
  in_turn(1);
  frames->SetEnabled(false);
  turn = 2;
  ends_while_off.join();
  read();
  CHECK(ends.size() == 2);
  CHECK(ends[2] == 1);
  frames->SetEnabled(true);
  std::thread outlives([&] {
    { PERFKIT_ZONE(*frames, "zone"); }
    turn = 3;
    in_turn(4);
  });
  in_turn(3);
  frames.reset();
  turn = 4;
  outlives.join();
  for (int i = 0; i < 3; ++i) read();
  CHECK(ends.size() == 3);
  for (const auto& [thread, count] : ends) CHECK(count == 1);
}

TEST_CASE("the log of the marking thread ends with the thread", "[frame][recording]") {
  std::optional<FrameCounter> frames;
  std::unique_ptr<FrameRecording> recording;
  std::thread([&] {
    frames.emplace(FrameOptions{.events = {"page-faults"}});
    recording = MustRecord(*frames);
    frames->Mark();
    frames->Mark();
  }).join();
  int ends = 0;
  const auto read = [&] {
    recording->Read([&](const FrameEvent& event) { ends += event.kind == ZoneRecordKind::kEnd; });
  };
  read();
  CHECK(ends == 1);
  frames.reset();
  for (int i = 0; i < 3; ++i) read();
  CHECK(ends == 1);
}

TEST_CASE("the log of a thread that is attached during a recording begins at once", "[frame][recording]") {
  FrameCounter frames({.events = {"page-faults"}});
  const std::unique_ptr<FrameRecording> recording = MustRecord(frames);
  std::atomic<int> turn{0};
  std::thread worker([&] {
    const auto attached = frames.AttachThread("io");
    turn = 1;
    while (turn.load() != 2) std::this_thread::yield();
  });
  while (turn.load() != 1) std::this_thread::yield();
  recording->Read([](const FrameEvent&) {});
  int gaps = 0;
  recording->ReadGaps([&](const FrameEvent&) { ++gaps; });
  turn = 2;
  worker.join();
  CHECK(gaps == 0);
}

}  // namespace
}  // namespace perfkit::count
