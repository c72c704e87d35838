// Frames kept for their time in a zone, or for a count: the same ones that a sort of all frames puts first.
#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "perfkit/frame_counter.h"
#include "src/session/frame_keeper.h"
#include "tests/session/keeping.h"
#include "tests/session/support.h"

namespace perfkit::session {
namespace {

using namespace std::chrono_literals;

constexpr size_t kWorstFrames = 6;

uint32_t OwnIndex(uint32_t thread) { return thread; }

// Frames that follow on one another on thread 0, of random lengths, with three random numbers each.
class RankedLoop {
 public:
  RankedLoop(FrameKeeper& keeper, uint32_t seed) : keeper_(keeper), random_(seed) {}

  void Run(size_t frames) {
    for (size_t i = 0; i < frames; ++i) {
      // Few different numbers, so that many are equal; the last one is 0 in most frames.
      const uint64_t length = 1000 + random_() % 50;
      const EndedFrame frame{
          .from_ns = now_ns_,
          .to_ns = now_ns_ + length,
          .is_over_budget = random_() % 20 == 0,
          .has_reason = random_() % 20 == 0,
          .numbers = {random_() % 40, random_() % 1'000'000, random_() % 30 == 0 ? random_() % 5 : 0}};
      now_ns_ = frame.to_ns;
      all_.push_back(frame);
      keeper_.Add(frame);
      keeper_.DecideUntil(now_ns_);
      if (random_() % 8 == 0) keeper_.Release();
    }
    keeper_.DecideUntil(UINT64_MAX);
    keeper_.Release();
  }
  const std::vector<EndedFrame>& all() const { return all_; }
  // The begins of the frames that a stable sort by `number_of` puts first; none whose number is 0.
  template <class NumberOf>
  std::set<uint64_t> First(size_t count, NumberOf&& number_of) const {
    std::vector<EndedFrame> sorted = all_;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](const EndedFrame& a, const EndedFrame& b) { return number_of(a) > number_of(b); });
    std::set<uint64_t> first;
    for (size_t i = 0; i < std::min(count, sorted.size()) && number_of(sorted[i]) != 0; ++i)
      first.insert(sorted[i].from_ns);
    return first;
  }

 private:
  FrameKeeper& keeper_;
  std::mt19937 random_;
  uint64_t now_ns_ = 1'000'000;
  std::vector<EndedFrame> all_;
};

TEST_CASE("frames are kept by each number as a sort would, and by length as ever", "[frame_keeper][law]") {
  const uint32_t seed = GENERATE(range(1u, 40u));
  const size_t max_frames = GENERATE(0, 10, 10'000);
  FrameKeeper keeper(
      {.worst = kWorstFrames, .worst_by = {"a", "b", "c"}, .max_frames = max_frames, .before = 0, .references = 0});
  RankedLoop loop(keeper, seed);
  loop.Run(400);
  const std::set<uint64_t> longest = loop.First(kWorstFrames, [](const EndedFrame& one) { return one.duration_ns(); });
  std::set<uint64_t> must = longest;
  std::vector<std::set<uint64_t>> by_number;
  for (size_t i = 0; i < 3; ++i) {
    by_number.push_back(loop.First(kWorstFrames, [i](const EndedFrame& one) { return one.numbers[i]; }));
    must.insert(by_number[i].begin(), by_number[i].end());
  }
  const KeptTimes times = keeper.Times(OwnIndex);
  size_t kept = 0, slow = 0;
  for (const EndedFrame& frame : loop.all()) {
    const bool is_kept = times.Covers(1, frame.from_ns, frame.to_ns);
    const bool is_worst = must.contains(frame.from_ns);
    kept += is_kept ? 1 : 0;
    slow += frame.is_slow() || is_worst ? 1 : 0;
    if (is_worst && !is_kept) FAIL_CHECK("one of the worst is not kept");
    if (is_kept && !is_worst && !frame.is_slow()) FAIL_CHECK("kept for nothing");
    uint64_t mask = 0;
    for (size_t i = 0; i < 3; ++i) mask |= by_number[i].contains(frame.from_ns) ? uint64_t{1} << i : 0;
    if (keeper.WorstBy(frame) != mask) CHECK(keeper.WorstBy(frame) == mask);
  }
  CHECK(kept == std::min(slow, std::max(max_frames, must.size())));
  if (max_frames == 10'000) CHECK(keeper.dropped() == 0);
  if (max_frames == 0) CHECK(keeper.dropped() >= slow - kept);
}

TEST_CASE("without room, the longest frames outlast those with the largest numbers", "[frame_keeper][law]") {
  FrameKeeper keeper({.worst = kWorstFrames, .worst_by = {"a", "b", "c"}, .before = 0, .references = 0});
  RankedLoop loop(keeper, 7);
  loop.Run(300);
  const auto kept = [&] {
    const KeptTimes times = keeper.Times(OwnIndex);
    std::vector<EndedFrame> frames;
    std::ranges::copy_if(loop.all(), std::back_inserter(frames),
                         [&](const EndedFrame& one) { return times.Covers(1, one.from_ns, one.to_ns); });
    return frames;
  };
  const uint64_t dropped = keeper.dropped();
  const std::vector<EndedFrame> before = kept();
  REQUIRE(keeper.DropHalf());
  const std::vector<EndedFrame> after = kept();
  CHECK(after.size() == before.size() / 2);
  CHECK(keeper.dropped() - dropped == before.size() - after.size());
  std::set<uint64_t> left;
  uint64_t shortest_left_ns = UINT64_MAX;
  for (const EndedFrame& frame : after) {
    left.insert(frame.from_ns);
    if (!frame.has_reason) shortest_left_ns = std::min(shortest_left_ns, frame.duration_ns());
  }
  REQUIRE(shortest_left_ns != UINT64_MAX);
  for (const EndedFrame& frame : before) {
    if (left.contains(frame.from_ns)) continue;
    CHECK_FALSE(frame.has_reason);
    CHECK(frame.duration_ns() <= shortest_left_ns);
  }
}

TEST_CASE("a place that was given up for want of room is free for a later frame", "[frame_keeper]") {
  FrameKeeper other({.worst = 1, .worst_by = {"a"}, .before = 0, .references = 0});
  other.Add({.from_ns = 10, .to_ns = 20, .numbers = {5}});
  other.Add({.from_ns = 20, .to_ns = 25, .numbers = {9}});
  REQUIRE(other.DropHalf());  // the shorter one, with the largest number
  CHECK(other.dropped() == 1);
  CHECK(other.WorstBy({.from_ns = 20, .to_ns = 25}) == 0);
  other.Add({.from_ns = 25, .to_ns = 28, .numbers = {2}});
  CHECK(other.WorstBy({.from_ns = 25, .to_ns = 28}) == 1);
}

// What the test knows of a frame. The time in a zone is between two readings within it and two around it.
struct KnownFrame {
  uint64_t faults = 0;
  std::chrono::nanoseconds min_solve{0}, max_solve{0};
};

// Several visits of the zone add up. Returns what is known of each frame.
std::vector<KnownFrame> PlayRandomFrames(FrameCounter& frames, size_t count) {
  std::mt19937 random(3);
  std::vector<KnownFrame> known(count);
  frames.Mark();
  for (KnownFrame& frame : known) {
    PERFKIT_ZONE(frames, "update");
    for (int part = 0; part < 2; ++part) {
      const auto around = std::chrono::steady_clock::now();
      {
        PERFKIT_ZONE(frames, "solve");
        const auto within = std::chrono::steady_clock::now();
        Spin(std::chrono::microseconds(random() % 100));
        frame.min_solve += std::chrono::steady_clock::now() - within;
      }
      frame.max_solve += std::chrono::steady_clock::now() - around;
    }
    Fault(random() % 60);
    frames.Mark();
  }
  const FrameHistory history = frames.history();
  REQUIRE(history.size() >= count);
  for (size_t i = 0; i < count; ++i) known[i].faults = history[history.size() - count + i].values[1];
  return known;
}

// No other frame has more; of clocks, which are rounded and compared with another one, by more than 4 us.
void CheckWorst(const std::vector<KnownFrame>& known, const std::set<size_t>& by_solve,
                const std::set<size_t>& by_faults) {
  for (size_t other = 0; other < known.size(); ++other) {
    for (const size_t kept : by_solve) {
      const bool is_less = known[kept].max_solve + 4us < known[other].min_solve;
      if (!by_solve.contains(other) && is_less) CHECK(known[kept].max_solve >= known[other].min_solve);
    }
    for (const size_t kept : by_faults) {
      const bool is_less = other < kept ? known[kept].faults <= known[other].faults  // of equals the first stays
                                        : known[kept].faults < known[other].faults;
      if (!by_faults.contains(other) && is_less) CHECK(known[kept].faults > known[other].faults);
    }
  }
}

TEST_CASE("the worst frames by a zone and by an event are kept, and say so", "[session][keep][law]") {
  constexpr size_t kFrames = 300, kWorst = 4;
  FrameCounter frames({.events = {"task-clock", "page-faults"}, .history_frames = 2 * kFrames});
  absl::StatusOr<Session> session = Session::Start(
      Keeping(frames, {.worst = kWorst,
                       .worst_by = {"update/solve", "page-faults", "solve", "no such zone", "page-faults"},
                       .before = 0,
                       .references = 0}));
  REQUIRE(session.status() == absl::OkStatus());
  const std::vector<KnownFrame> known = PlayRandomFrames(frames, kFrames);
  const uint64_t first = frames.history()[frames.history().size() - kFrames].number;
  const absl::StatusOr<Profile> profile = session->Stop();
  REQUIRE(profile.status() == absl::OkStatus());
  CHECK(profile->Check() == absl::OkStatus());
  std::set<size_t> by_faults, by_solve;
  for (const ProfileZone& zone : profile->zones) {
    if (!zone.is_frame || zone.worst_by == 0) continue;
    CHECK(zone.is_whole);
    const std::string& names = profile->strings[zone.worst_by];
    const std::string& name = profile->strings[zone.name];
    const size_t number = std::stoull(name.substr(name.find(' ') + 1)) - first;
    const bool is_solve = names.find("update/solve") != names.npos, is_faults = names.find("page-faults") != names.npos;
    CHECK(names == (!is_faults  ? "update/solve, solve"
                    : !is_solve ? "page-faults, page-faults"
                                : "update/solve, page-faults, solve, page-faults"));
    if (is_solve) by_solve.insert(number);
    if (is_faults) by_faults.insert(number);
    const auto index = static_cast<uint32_t>(&zone - profile->zones.data());
    const std::string text = FormatSlowFrame(*profile, ExplainFrame(*profile, index));
    CHECK(text.find("\n  among the worst by " + names + "\n") != text.npos);
  }
  CHECK(by_solve.size() == kWorst);
  CHECK(by_faults.size() == kWorst);
  CheckWorst(known, by_solve, by_faults);
  const std::vector<std::string>& notes = profile->accounting.notes;
  const std::string note = "no frame is kept by 'no such zone'";
  CHECK(std::ranges::count_if(notes, [&](const auto& one) { return one.starts_with(note); }) == 1);
  CHECK(std::ranges::count_if(notes, [](const auto& one) { return one.find("worst_by") != one.npos; }) == 1);
}

TEST_CASE("frames are kept by 64 names at most", "[session][keep]") {
  FrameCounter frames({.events = {"page-faults"}});
  const KeepFrames too_many{.worst_by = std::vector<std::string>(65, "solve")};
  CHECK(Session::Start(Keeping(frames, too_many)).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace perfkit::session
