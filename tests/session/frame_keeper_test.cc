// The longest frames stay, those with a reason too, and nothing is released while it may still be wanted.
#include "src/session/frame_keeper.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

namespace perfkit::session {
namespace {

uint32_t SameIndex(uint32_t thread) { return thread; }

// Frames that follow on one another.
class Loop {
 public:
  explicit Loop(FrameKeeper& keeper, uint32_t thread = 0) : keeper_(keeper), thread_(thread) {}

  EndedFrame Frame(uint64_t ns, bool is_over_budget = false, bool has_reason = false) {
    const EndedFrame frame{.thread = thread_,
                           .from_ns = now_ns_,
                           .to_ns = now_ns_ + ns,
                           .is_over_budget = is_over_budget,
                           .has_reason = has_reason};
    now_ns_ += ns;
    keeper_.Add(frame);
    keeper_.DecideUntil(now_ns_);
    all_.push_back(frame);
    return frame;
  }
  const std::vector<EndedFrame>& all() const { return all_; }
  // Those of which everything is kept, as of all threads.
  std::vector<uint64_t> KeptLengths() const {
    const KeptTimes times = keeper_.Times(SameIndex);
    std::vector<uint64_t> lengths;
    for (const EndedFrame& frame : all_) {
      if (times.Covers(thread_ + 1, frame.from_ns, frame.to_ns)) lengths.push_back(frame.duration_ns());
    }
    std::sort(lengths.rbegin(), lengths.rend());
    return lengths;
  }

 private:
  FrameKeeper& keeper_;
  const uint32_t thread_;
  uint64_t now_ns_ = 1'000'000;
  std::vector<EndedFrame> all_;
};

TEST_CASE("the longest frames are kept, whenever one looks", "[frame_keeper]") {
  std::mt19937 random(GENERATE(range(1u, 30u)));
  FrameKeeper keeper({.worst = 5, .before = 0, .references = 0});
  Loop loop(keeper);
  std::vector<uint64_t> lengths;
  for (int i = 0; i < 300; ++i) {
    lengths.push_back(loop.Frame(1 + random() % 1'000'000).duration_ns());
    if (random() % 4 == 0) keeper.Release();
    std::sort(lengths.rbegin(), lengths.rend());
    if (i % 50 != 49) continue;
    keeper.Release();
    lengths.resize(5);
    CHECK(loop.KeptLengths() == lengths);
  }
  CHECK(keeper.dropped() == 0);
}

TEST_CASE("frames over their budget and with a reason are kept, up to max_frames", "[frame_keeper]") {
  FrameKeeper keeper({.worst = 2, .max_frames = 6, .before = 0, .references = 0});
  Loop loop(keeper);
  loop.Frame(900);
  loop.Frame(901);
  for (uint64_t ns = 500; ns < 504; ++ns) loop.Frame(ns, true);
  keeper.Release();
  CHECK(loop.KeptLengths() == std::vector<uint64_t>{901, 900, 503, 502, 501, 500});
  CHECK(keeper.dropped() == 0);
  loop.Frame(10, false, true);  // a reason outlasts what is longer
  keeper.Release();
  CHECK(loop.KeptLengths() == std::vector<uint64_t>{901, 900, 503, 502, 501, 10});
  for (uint64_t ns = 1; ns < 5; ++ns) loop.Frame(ns, false, true);
  keeper.Release();
  CHECK(loop.KeptLengths() == std::vector<uint64_t>{901, 900, 4, 3, 2, 1});
  CHECK(keeper.dropped() == 5);
  loop.Frame(20);  // none of the longest, not slow
  keeper.Release();
  CHECK(loop.KeptLengths() == std::vector<uint64_t>{901, 900, 4, 3, 2, 1});
  CHECK(keeper.dropped() == 5);
}

TEST_CASE("what may still be wanted is not released", "[frame_keeper]") {
  const size_t before = GENERATE(0, 1, 3);
  FrameKeeper keeper({.worst = 1, .before = before, .references = 0});
  CHECK(keeper.Release() == 0);
  Loop main(keeper);
  for (int i = 0; i < 10; ++i) {
    main.Frame(100 + i % 3);
    CHECK(keeper.Release() <= main.all().back().to_ns);
    const size_t first = main.all().size() > before ? main.all().size() - before : 0;
    for (size_t frame = first; frame < main.all().size(); ++frame)
      CHECK(keeper.released_ns() <= main.all()[frame].from_ns);
  }
  const EndedFrame slow = main.Frame(5000, true);
  keeper.Release();
  const KeptTimes times = keeper.Times(SameIndex);
  CHECK(times.Covers(7, main.all()[10 - before].from_ns, slow.to_ns));
  // A loop that stands still holds everything up, until its thread ends.
  Loop other(keeper, 1);
  const uint64_t held_ns = other.Frame(10).from_ns;
  for (int i = 0; i < 10; ++i) main.Frame(100);
  const uint64_t released_ns = keeper.Release();
  keeper.EndThread(1);
  CHECK(keeper.Release() > released_ns);
  CHECK(held_ns < released_ns);
  keeper.DecideUntil(UINT64_MAX);
  CHECK(keeper.Release() == UINT64_MAX);
}

TEST_CASE("a thread whose end is known before its frames holds nothing up", "[frame_keeper]") {
  FrameKeeper keeper({.worst = 4, .before = 2, .references = 4});
  keeper.EndThread(1);
  Loop ended(keeper, 1);
  Loop main(keeper);
  ended.Frame(10);
  for (int i = 0; i < 10; ++i) main.Frame(100);
  const uint64_t released_ns = keeper.Release();
  CHECK(released_ns == main.all()[main.all().size() - 2].from_ns);
  // Its number becomes another thread's, which runs.
  keeper.Forget(1);
  Loop next(keeper, 1);
  next.Frame(10);
  for (int i = 0; i < 10; ++i) main.Frame(100);
  CHECK(keeper.Release() == released_ns);
}

TEST_CASE("a frame of a time that had to be released is dropped, and counted", "[frame_keeper]") {
  FrameKeeper keeper({.worst = 4, .before = 2, .references = 4});
  Loop loop(keeper);
  for (int i = 0; i < 4; ++i) loop.Frame(100);
  const uint64_t forced_ns = loop.all().back().to_ns + 50;  // in a frame that is none of the longest
  keeper.ReleaseUntil(forced_ns);
  loop.Frame(99);
  CHECK(keeper.dropped() == 0);
  loop.Frame(2000, true);
  CHECK(keeper.dropped() == 0);
  CHECK(keeper.TimesOf(loop.all().back(), SameIndex).Covers(0, loop.all().back().from_ns, loop.all().back().to_ns));
  CHECK_FALSE(keeper.IsReference(loop.all()[4]));
  keeper.ReleaseUntil(loop.all().back().to_ns + 1);
  loop.Frame(50, true);
  CHECK(keeper.dropped() == 1);
  keeper.ReleaseUntil(loop.all().back().to_ns + 1);
  loop.Frame(3000);
  CHECK(keeper.dropped() == 2);
  CHECK_FALSE(
      keeper.TimesOf(loop.all().back(), SameIndex).Covers(0, loop.all().back().from_ns, loop.all().back().to_ns));
}

TEST_CASE("half of what is kept goes, short frames without a reason first", "[frame_keeper]") {
  FrameKeeper keeper({.worst = 8, .before = 0, .references = 8});
  Loop loop(keeper);
  for (uint64_t i = 1; i <= 8; ++i) loop.Frame(100 * i, false, i <= 2);
  keeper.DecideUntil(UINT64_MAX);
  keeper.Release();
  size_t left = 8;
  while (keeper.DropHalf()) {
    const std::vector<uint64_t> lengths = loop.KeptLengths();
    CHECK(lengths.size() == left / 2);
    left = lengths.size();
    if (left == 4) CHECK(lengths == std::vector<uint64_t>{800, 700, 200, 100});
    if (left == 2) CHECK(lengths == std::vector<uint64_t>{200, 100});
    REQUIRE(loop.all().size() == 8);
  }
  CHECK(left == 0);
  CHECK(keeper.dropped() == 8);
}

// Each frame is as likely as any other: the mean of the chosen ones' numbers is that of all, within what chance allows.
TEST_CASE("references are chosen from all of the run", "[frame_keeper]") {
  constexpr size_t kFrames = 20'000, kReferences = 400;
  FrameKeeper keeper({.worst = 0, .before = 0, .references = kReferences});
  Loop loop(keeper);
  for (size_t i = 0; i < kFrames; ++i) loop.Frame(100);
  keeper.Release();
  size_t chosen = 0;
  double sum = 0;
  const KeptTimes times = keeper.Times(SameIndex);
  for (size_t i = 0; i < kFrames; ++i) {
    const EndedFrame& frame = loop.all()[i];
    if (!keeper.IsReference(frame)) continue;
    ++chosen;
    sum += static_cast<double>(i);
    CHECK(times.Covers(0, frame.from_ns, frame.to_ns));
    if (frame.to_ns <= keeper.released_ns()) CHECK_FALSE(times.Covers(1, frame.from_ns, frame.to_ns));
  }
  CHECK(chosen == kReferences);
  const double mean = sum / static_cast<double>(chosen), deviation = kFrames / 3.46 / 20;  // uniform, of 400
  CHECK(std::abs(mean - kFrames / 2.0) < 5 * deviation);
}

TEST_CASE("a thread that is gone takes its frames with it", "[frame_keeper]") {
  FrameKeeper keeper({.worst = 4, .before = 0, .references = 4});
  Loop stays(keeper), goes(keeper, 1);
  stays.Frame(100);
  goes.Frame(300);
  keeper.Forget(1);
  keeper.DecideUntil(UINT64_MAX);
  keeper.Release();
  CHECK(keeper.Times(SameIndex).Covers(0, stays.all()[0].from_ns, stays.all()[0].to_ns));
  CHECK(goes.KeptLengths().empty());
  CHECK(keeper.dropped() == 1);
}

TEST_CASE("the references that stay are a random half", "[frame_keeper]") {
  constexpr size_t kFrames = 64;
  FrameKeeper keeper({.worst = 0, .before = 0, .references = kFrames});
  Loop loop(keeper);
  for (size_t i = 0; i < kFrames; ++i) loop.Frame(100);
  REQUIRE(keeper.DropHalf());
  size_t early = 0, late = 0;
  for (size_t i = 0; i < kFrames; ++i) (i < kFrames / 2 ? early : late) += keeper.IsReference(loop.all()[i]) ? 1 : 0;
  CHECK(early + late == kFrames / 2);
  // The same in each run, as random numbers have a fixed seed; by chance, fewer than 8 of 32 are 1 case in 30,000.
  CHECK((early >= 8 && late >= 8));
}

TEST_CASE("a frame that began before the session is no reference", "[frame_keeper]") {
  FrameKeeper keeper({.worst = 1, .before = 0, .references = 8});
  keeper.SetStart(1'000'001);
  Loop loop(keeper);
  loop.Frame(100);
  loop.Frame(100);
  CHECK_FALSE(keeper.IsReference(loop.all()[0]));
  CHECK(keeper.IsReference(loop.all()[1]));
}

}  // namespace
}  // namespace perfkit::session
