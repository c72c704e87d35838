// A recording says of a FrameCounter's threads what the FrameCounter itself does.
#include "src/count/frame/frame_recording.h"

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "perfkit/frame_counter.h"
#include "src/count/frame/frame_counter_impl.h"
#include "src/sys/clock.h"
#include "src/sys/kernel.h"
#include "tests/count/frame/zones.h"
#include "tests/support/allocations.h"
#include "tests/support/fake_kernel.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::count {
namespace {

std::unique_ptr<FrameRecording> RecordingOf(FrameCounter& frames) {
  auto recording = FrameCounterImpl::Of(frames)->Record();
  REQUIRE(recording.status() == absl::OkStatus());
  return *std::move(recording);
}

// What a recording has told.
struct Heard {
  struct Zone {
    uint64_t calls = 0, ns = 0;
  };
  struct Thread {
    uint32_t tid = 0;
    std::map<uint16_t, std::string> paths;
    std::vector<std::pair<std::string, uint64_t>> open;
    std::map<std::string, Zone> zones;
    uint64_t last_ns = 0;
    bool has_ended = false;
  };
  std::map<uint64_t, Thread> threads;
  struct MarkedFrame {
    uint64_t from_ns = 0, to_ns = 0;
    FrameRecord record;
  };
  std::map<std::string, std::vector<MarkedFrame>> frames;
  std::map<uint64_t, std::string> causes;
  uint64_t lost = 0;

  void Read(FrameRecording& recording) {
    recording.Read([&](const FrameEvent& event) { Add(event); });
  }
  void Add(const FrameEvent& event) {
    Thread& thread = threads[event.thread];
    thread.tid = event.tid;
    if (event.kind == ZoneRecordKind::kEnter) {
      thread.paths[event.id] = thread.paths[event.parent] + "/" + event.name;
      thread.open.emplace_back(thread.paths[event.id], event.from_ns);
    } else if (event.kind == ZoneRecordKind::kLeave) {
      REQUIRE(!thread.open.empty());
      const auto [path, from_ns] = thread.open.back();
      CHECK(event.from_ns >= from_ns);
      CHECK(event.from_ns >= thread.last_ns);
      thread.last_ns = event.from_ns;
      ++thread.zones[path].calls;
      thread.zones[path].ns += event.from_ns - from_ns;
      thread.open.pop_back();
    } else if (event.kind == ZoneRecordKind::kFrame) {
      FrameRecord record{.number = event.number, .missing = event.missing};
      for (size_t i = 0; i < event.values.size(); ++i) record.values[i] = event.values[i];
      frames[event.name].push_back({event.from_ns, event.to_ns, record});
    } else if (event.kind == ZoneRecordKind::kHitch) {
      causes[event.number] = event.text;
    } else if (event.kind == ZoneRecordKind::kEnd) {
      thread.has_ended = true;
      thread.open.clear();
    } else if (event.kind == ZoneRecordKind::kGap) {
      thread.open.clear();
      lost += event.lost;
    }
  }
  const Thread& OfTid(int tid) const {
    for (const auto& [serial, thread] : threads) {
      if (thread.tid == static_cast<uint32_t>(tid)) return thread;
    }
    FAIL("no thread " << tid);
    throw;
  }
};

[[gnu::noinline]] void Busy() {
  for (int i = 0; i < 1000; ++i) asm volatile("" ::: "memory");
}

void WorkInFrame(FrameCounter& frames, int turns) {
  PERFKIT_ZONE(frames, "physics");
  Busy();
  for (int i = 0; i < turns; ++i) {
    PERFKIT_ZONE(frames, "solve");
    Busy();
  }
}

TEST_CASE("a thread that is detached while its log is full has a gap until then", "[frame][recording][law]") {
  FrameCounter frames({.events = perfkit::kEvents});
  const std::unique_ptr<FrameRecording> recording = RecordingOf(frames);
  Heard heard;
  uint64_t detached_ns = 0;
  std::vector<FrameEvent> gaps;
  const auto read = [&] {
    recording->Read([&](const FrameEvent& event) {
      heard.Add(event);
      if (event.kind == ZoneRecordKind::kGap) gaps.push_back(event);
    });
  };
  std::thread([&] {
    const auto attached = frames.AttachThread("worker");
    PERFKIT_ZONE(frames, "outer");
    for (int i = 0; i < 100'000; ++i) {
      PERFKIT_ZONE(frames, "inner");
    }
    detached_ns = sys::ClockNs(CLOCK_MONOTONIC);
  }).join();
  for (int i = 0; i < 3; ++i) read();
  REQUIRE(gaps.size() == 1);
  CHECK(gaps[0].lost >= 100'000);  // at least a record a zone
  CHECK(gaps[0].from_ns <= gaps[0].to_ns);
  CHECK(gaps[0].to_ns + 1'000'000 >= detached_ns);
  CHECK(gaps[0].to_ns <= sys::ClockNs(CLOCK_MONOTONIC) + 1'000'000);
  for (const auto& [serial, thread] : heard.threads) CHECK(thread.open.empty());
  recording->ReadGaps([](const FrameEvent&) { FAIL("the thread is gone"); });
}

TEST_CASE("a recording has the frames and zones that the FrameCounter counts", "[frame][recording]") {
  FrameCounter frames({.events = perfkit::kEvents});
  const std::unique_ptr<FrameRecording> recording = RecordingOf(frames);
  Heard heard;
  frames.Mark();
  for (int i = 0; i < 40; ++i) {
    WorkInFrame(frames, i % 5);
    frames.Mark();
    if (i % 10 == 0) heard.Read(*recording);
  }
  heard.Read(*recording);

  const std::vector<Heard::MarkedFrame>& ended = heard.frames[""];
  REQUIRE(ended.size() == 40);
  uint64_t wall_ns = 0;
  for (size_t i = 0; i < ended.size(); ++i) {
    const FrameRecord& counted = frames.history()[frames.history().size() - 40 + i];
    CHECK(ended[i].record.number == counted.number);
    CHECK(ended[i].record.missing == counted.missing);
    wall_ns += counted.wall_ns;
    for (size_t e = 0; e < perfkit::kEvents.size(); ++e) CHECK(ended[i].record.values[e] == counted.values[e]);
    CHECK(ended[i].from_ns <= ended[i].to_ns);
    if (i > 0) CHECK(ended[i - 1].to_ns <= ended[i].from_ns);
  }
  const Heard::Thread& thread = heard.OfTid(sys::kernel().gettid());
  CHECK(thread.open.empty());
  const std::vector<ZoneStats> zones = frames.zones();
  const ZoneStats* const physics = Find(zones, "physics");
  const ZoneStats* const solve = Find(zones, "solve");
  REQUIRE((physics != nullptr && solve != nullptr));
  CHECK(thread.zones.at("/physics").calls == physics->calls);
  CHECK(thread.zones.at("/physics/solve").calls == solve->calls);
  // Two clocks: the rates of both, and the readings at the ends.
  const auto ratio = [](uint64_t told, uint64_t counted) {
    return static_cast<double>(told) / static_cast<double>(counted);
  };
  CHECK(ratio(ended.back().to_ns - ended.front().from_ns, wall_ns) == Approx(1).margin(0.1));
  CHECK(ratio(thread.zones.at("/physics").ns, physics->wall_ns) == Approx(1).margin(0.1));
  CHECK(ratio(thread.zones.at("/physics/solve").ns, solve->wall_ns) == Approx(1).margin(0.1));
}

TEST_CASE("threads that attach late, end, or are inside a zone from the start are recorded", "[frame][recording]") {
  FrameCounter frames({.events = perfkit::kEvents});
  std::atomic<int> step{0};
  std::atomic<int> early_tid{0};
  const auto await = [&](int wanted) {
    while (step != wanted) std::this_thread::yield();
  };
  std::thread early([&] {
    early_tid = sys::kernel().gettid();
    {
      PERFKIT_ZONE(frames, "early");
      step = 1;
      await(2);
    }
    step = 3;
    await(4);
  });
  await(1);
  const std::unique_ptr<FrameRecording> recording = RecordingOf(frames);
  Heard heard;
  heard.Read(*recording);
  size_t gaps = 0;
  recording->ReadGaps([&](const FrameEvent& gap) {
    ++gaps;
    CHECK(gap.tid == static_cast<uint32_t>(early_tid));
  });
  CHECK(gaps == 1);  // it is inside of an unknown zone
  step = 2;
  await(3);
  heard.Read(*recording);
  recording->ReadGaps([&](const FrameEvent&) { FAIL("all are known"); });
  CHECK(heard.OfTid(early_tid).zones.at("/early").calls == 1);
  std::atomic<int> late_tid{0};
  std::thread([&] {
    late_tid = sys::kernel().gettid();
    WorkInFrame(frames, 2);
  }).join();
  step = 4;
  early.join();
  heard.Read(*recording);
  const Heard::Thread& late = heard.OfTid(late_tid);
  CHECK(late.zones.at("/physics").calls == 1);
  CHECK(late.zones.at("/physics/solve").calls == 2);
  CHECK(late.has_ended);
  CHECK(heard.OfTid(early_tid).has_ended);
  CHECK(heard.lost == 0);
}

TEST_CASE("frames of other loops are recorded by their names", "[frame][recording]") {
  FrameCounter frames({.events = perfkit::kEvents});
  const FrameId audio = frames.DefineFrame("audio");
  const std::unique_ptr<FrameRecording> recording = RecordingOf(frames);
  std::thread([&] {
    for (int i = 0; i < 5; ++i) frames.Mark(audio);
  }).join();
  Heard heard;
  heard.Read(*recording);
  REQUIRE(heard.frames["audio"].size() == 4);
  const std::vector<FrameRecord> history = frames.history(audio);
  REQUIRE(history.size() == 4);
  for (size_t i = 0; i < 4; ++i) CHECK(heard.frames["audio"][i].record.values == history[i].values);
  CHECK(heard.frames[""].empty());
}

TEST_CASE("a recording outlives the FrameCounter, and a later one replaces it", "[frame][recording]") {
  auto frames = std::make_unique<FrameCounter>(FrameCounter::Options{.events = perfkit::kEvents});
  const std::unique_ptr<FrameRecording> first = RecordingOf(*frames);
  WorkInFrame(*frames, 1);
  const std::unique_ptr<FrameRecording> second = RecordingOf(*frames);
  WorkInFrame(*frames, 2);
  std::thread([&] { WorkInFrame(*frames, 3); }).join();
  Heard none, heard;
  frames.reset();
  none.Read(*first);
  CHECK(none.threads.empty());
  heard.Read(*second);
  CHECK(heard.OfTid(sys::kernel().gettid()).zones.at("/physics/solve").calls == 2);
  CHECK(heard.threads.size() == 2);
  heard.Read(*second);
  heard.Read(*second);
}

TEST_CASE("a hitch has its cause in the recording", "[frame][recording]") {
  FrameCounter frames({.events = perfkit::kEvents, .hitch_budget = std::chrono::nanoseconds(1)});
  const std::unique_ptr<FrameRecording> recording = RecordingOf(frames);
  frames.Mark();
  WorkInFrame(frames, 1);
  frames.Mark();
  Heard heard;
  heard.Read(*recording);
  REQUIRE(frames.hitches().size() == 1);
  CHECK(heard.causes[frames.hitches()[0].frame] == frames.hitches()[0].cause);
}

TEST_CASE("a reason comes before the frame that it marks, by whichever thread", "[frame][recording]") {
  FrameCounter frames({.events = perfkit::kEvents, .hitch_budget = std::chrono::milliseconds(5)});
  const FrameId audio = frames.DefineFrame("audio", std::chrono::milliseconds(2));
  const FrameId loads = frames.DefineFrame("load");
  frames.Keep("no recording listens");
  const std::unique_ptr<FrameRecording> recording = RecordingOf(frames);
  CHECK((recording->budget_ns(0) == 5'000'000 && recording->budget_ns(1) == 2'000'000));
  CHECK(recording->budget_ns(static_cast<uint16_t>(loads.index)) == 0);
  frames.Mark();
  frames.Mark();
  frames.Keep("level 3");
  frames.Keep({77}, "no such frame");
  std::string cut(255, 'x');
  frames.Keep(audio, cut + "\u00e4");  // two bytes, of which one has room
  std::thread([&] { frames.Keep("a thread without zones"); }).join();
  frames.Mark();
  std::vector<std::pair<uint16_t, std::string>> reasons;
  uint64_t ended = 0;
  recording->Read([&](const FrameEvent& event) {
    if (event.kind == ZoneRecordKind::kFrame && event.tid == static_cast<uint32_t>(sys::kernel().gettid())) ++ended;
    if (event.kind != ZoneRecordKind::kReason) return;
    if (event.tid == static_cast<uint32_t>(sys::kernel().gettid())) CHECK(ended == 1);
    CHECK(event.is_cut == (event.text == cut));
    reasons.emplace_back(event.id, event.text);
  });
  CHECK(reasons ==
        std::vector<std::pair<uint16_t, std::string>>{{0, "level 3"}, {1, cut}, {0, "a thread without zones"}});
}

TEST_CASE("zones and marks of a recorded thread allocate nothing", "[frame][recording]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer owns operator new");
  FrameCounter frames({.events = perfkit::kEvents});
  const std::unique_ptr<FrameRecording> recording = RecordingOf(frames);
  frames.Mark();
  WorkInFrame(frames, 2);
  const uint64_t before = testing::allocations_so_far;
  for (int i = 0; i < 50'000; ++i) {  // more than there is room for
    WorkInFrame(frames, 2);
    frames.Keep("each of them");
    frames.AttachState("level=3");
    frames.Mark();
  }
  CHECK(testing::allocations_so_far == before);
  Heard heard;
  heard.Read(*recording);
  WorkInFrame(frames, 2);
  heard.Read(*recording);
  CHECK(heard.lost > 0);
}

// A clock that gains on the counter of ticks; and frames that are marked between its readings.
FrameCounter* g_marked = nullptr;
uint64_t g_gained_ns = 0;
int GainingClock(clockid_t clock, timespec* out) {
  if (FrameCounter* const frames = std::exchange(g_marked, nullptr); frames != nullptr) {
    testing::Sleep(1'000'000);
    frames->Mark();
    g_marked = frames;
  }
  const int result = sys::kLinux.clock_gettime(clock, out);
  const uint64_t ns = static_cast<uint64_t>(out->tv_nsec) + (clock == CLOCK_MONOTONIC ? g_gained_ns : 0);
  out->tv_sec += static_cast<time_t>(ns / 1'000'000'000);
  out->tv_nsec = static_cast<long>(ns % 1'000'000'000);
  return result;
}

TEST_CASE("frames never run backwards, although the rate of the clock changes", "[frame][recording][law]") {
  testing::FakeKernel fake;
  fake.below().clock_gettime = GainingClock;
  g_gained_ns = 0;
  FrameCounter frames({.events = perfkit::kEvents});
  const std::unique_ptr<FrameRecording> recording = RecordingOf(frames);
  frames.Mark();
  uint64_t last_ns = 0, heard = 0;
  for (int round = 0; round < 10; ++round) {
    if (round % 2 != 0) g_gained_ns += 20'000'000;
    g_marked = &frames;
    recording->Read([&](const FrameEvent& event) {
      if (event.kind != ZoneRecordKind::kFrame) return;
      ++heard;
      CHECK(event.from_ns >= last_ns);
      CHECK(event.to_ns >= event.from_ns);
      last_ns = event.to_ns;
    });
    g_marked = nullptr;
  }
  CHECK(heard > 0);
}

TEST_CASE("a forked child cannot record its parent's FrameCounter", "[frame][recording][fork]") {
  FrameCounter frames({.events = perfkit::kEvents});
  const std::unique_ptr<FrameRecording> recording = RecordingOf(frames);
  frames.Mark();
  const pid_t child = fork();
  if (child == 0) {
    WorkInFrame(frames, 1);
    frames.Mark();
    _exit(FrameCounterImpl::Of(frames)->Record().ok() ? 1 : 0);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  WorkInFrame(frames, 1);
  Heard heard;
  heard.Read(*recording);
  CHECK(heard.OfTid(sys::kernel().gettid()).zones.at("/physics/solve").calls == 1);
}

}  // namespace
}  // namespace perfkit::count
