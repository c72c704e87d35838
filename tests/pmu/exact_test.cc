// Instructions are counted one by one: a loop of N costs N and a constant, whatever reads the counter.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "perfkit/frame_counter.h"
#include "perfkit/measure.h"
#include "perfkit/scope.h"
#include "tests/pmu/pmu.h"

namespace perfkit {
namespace {

using testing::kLoopInstructions;
using testing::Loop;

constexpr int kTimes = 1000;
// Two reads and a call: by read(2) from user space, by registers, by way of the clock's page.
constexpr uint64_t kMaxOverhead = 400;
const uint64_t kRounds[] = {1, 100, 10'000};

// How often each number came.
using Seen = std::map<uint64_t, int>;

// What lies between two reads beside the loop: must be the same number every time.
uint64_t TheOne(const Seen& seen) {
  for (const auto& [overhead, times] : seen) UNSCOPED_INFO(times << " times " << overhead);
  CHECK(seen.size() == 1);
  return seen.begin()->first;
}

Seen Overheads(const CounterSet& set, uint64_t rounds) {
  Seen seen;
  int taken = 0, switched = 0;
  while (taken < kTimes) {
    Snapshot before, begin, end;
    set.Read(before);
    set.Read(begin);
    Loop(rounds);
    set.Read(end);
    const Count count = set.Difference(begin, end, 0);
    REQUIRE(count.validity.counted());
    REQUIRE(count.coverage() == 1);
    CHECK_FALSE(count.validity.has(Validity::kFallback));
    // A read after a switch has more to do, and counts itself: the numbers are right, and of another work.
    if (before.epoch != end.epoch) {
      REQUIRE(++switched < kTimes);  // how often is the kernel's affair; this ends the loop
      continue;
    }
    ++taken;
    ++seen[count.value - kLoopInstructions * rounds];
  }
  return seen;
}

TEST_CASE("a loop of N instructions counts N and a constant, by read and by register", "[exact]") {
  NEED_EXACT_PMU();
  for (const ReadPath path : {ReadPath::kGroupRead, ReadPath::kUserPage}) {
    CAPTURE(ReadPathName(path));
    if (path == ReadPath::kUserPage) NEED_USER_READS();
    const CounterSet set = MustOpen(std::array{EventSpec("instructions:u")}, Only(path));
    if (path == ReadPath::kUserPage) REQUIRE(set.path(0) == path);
    const uint64_t overhead = TheOne(Overheads(set, kRounds[0]));
    CHECK(overhead < kMaxOverhead);
    for (const uint64_t rounds : kRounds) CHECK(TheOne(Overheads(set, rounds)) == overhead);
    printf("%s: N + %d instructions\n", std::string(ReadPathName(path)).c_str(), static_cast<int>(overhead));
  }
}

TEST_CASE("the path of choice is the register, and every loop is exact", "[exact]") {
  NEED_USER_READS();
  const CounterSet set = MustOpen(std::array{EventSpec("instructions:u"), EventSpec("cycles:u")});
  CHECK(set.path(0) == ReadPath::kUserPage);
  CHECK(set.path(1) == ReadPath::kUserPage);
  int switched = 0;
  for (int i = 0; i < kTimes; ++i) {
    Snapshot begin, end;
    set.Read(begin);
    Loop(1000);
    set.Read(end);
    const Count instructions = set.Difference(begin, end, 0), cycles = set.Difference(begin, end, 1);
    const uint64_t own = instructions.value - 1000 * kLoopInstructions;
    if (instructions.validity.has(Validity::kSwitched)) ++switched;
    CHECK(own < (instructions.validity.has(Validity::kSwitched) ? 10 * kMaxOverhead : kMaxOverhead));
    // The two are read one after the other.
    const uint64_t per = testing::CyclesPerInstruction();
    CHECK(cycles.value / per + kMaxOverhead > instructions.value);
    CHECK(cycles.value / per < instructions.value + kMaxOverhead);
  }
  CHECK(switched < kTimes / 10);
}

TEST_CASE("a scope costs what two reads cost", "[exact]") {
  NEED_EXACT_PMU();
  const CounterSet set = MustOpen(std::array{EventSpec("instructions:u")}, Only(ReadPath::kGroupRead));
  Seen seen;
  int taken = 0, switched = 0;
  while (taken < kTimes) {
    ScopeTotals total;
    Snapshot before, after;
    set.Read(before);
    {
      const CounterScope scope(set, total);
      Loop(500);
    }
    set.Read(after);
    if (before.epoch != after.epoch) {  // as in Overheads
      REQUIRE(++switched < kTimes / 10);
      continue;
    }
    ++taken;
    ++seen[total.count(set, 0).value - 500 * kLoopInstructions];
  }
  CHECK(TheOne(seen) < kMaxOverhead);
}

TEST_CASE("frames and zones count what runs in them", "[exact]") {
  NEED_EXACT_PMU();
  FrameCounter frames({.events = {"instructions:u"}, .only_path = ReadPath::kGroupRead});
  Seen seen;
  frames.Mark();
  frames.Mark();
  for (int i = 0; i < kTimes; ++i) {
    Loop(500);
    frames.Mark();
    ++seen[frames.last().values[0] - 500 * kLoopInstructions];
  }
  // Marking is work too, and takes a different way now and then (the history wraps around): at most a few numbers.
  CHECK(seen.begin()->first < 10 * kMaxOverhead);
  CHECK(seen.rbegin()->first < 10 * kMaxOverhead);
}

TEST_CASE("Measure gives the number itself", "[exact]") {
  NEED_EXACT_PMU();
  for (const uint64_t rounds : {10, 1000, 10'000}) {
    const Measurement m = Measure({event::kInstructions}, [&] { Loop(rounds); });
    const Cost& cost = m.costs.front();
    INFO(cost.ToString());
    REQUIRE(cost.measured());
    // The region calls Loop, which an empty one doesn't.
    CHECK(cost.value() >= static_cast<int64_t>(rounds * kLoopInstructions));
    CHECK(cost.value() <= static_cast<int64_t>(rounds * kLoopInstructions + 20));
    // A switch in between costs the reader some instructions more, of its own.
    CHECK(std::ranges::count(cost.values, cost.value()) >= 9);
    CHECK(std::ranges::max(cost.values) < cost.value() + 100);
  }
}

TEST_CASE("cycles are not instructions, nor the other way round", "[exact]") {
  NEED_EXACT_PMU();
  for (const ReadPath path : {ReadPath::kGroupRead, ReadPath::kUserPage}) {
    if (path == ReadPath::kUserPage) NEED_USER_READS();
    const CounterSet set = MustOpen(std::array{EventSpec("cycles:u"), EventSpec("instructions:u")}, Only(path));
    Snapshot begin, end;
    set.Read(begin);
    Loop(1'000'000);
    set.Read(end);
    const double per = static_cast<double>(set.Difference(begin, end, 0).value) /
                       static_cast<double>(set.Difference(begin, end, 1).value);
    CHECK(per == Approx(static_cast<double>(testing::CyclesPerInstruction())).epsilon(0.01));
  }
}

}  // namespace
}  // namespace perfkit
