// ProgressWatch: which threads count as those that do not advance, and which don't.
#include "src/sample/progress_watch.h"

#include <catch2/catch.hpp>
#include <memory>

namespace perfkit::sample {
namespace {

constexpr uint32_t kStale = ProgressWatch::kStaleSignals;
constexpr uint64_t kGapNs = ProgressWatch::kMaxGapNs;

// Notes `count` stale signals of thread 7 at one place, 1 us apart. Returns how many of them said that it is stuck.
uint32_t Repeat(ProgressWatch& watch, uint32_t count, uint64_t& now_ns) {
  uint32_t stuck = 0;
  for (uint32_t i = 0; i < count; ++i) stuck += watch.IsStuck(7, 100, 200, true, now_ns += 1000);
  return stuck;
}

TEST_CASE("a thread is stuck at its 256th stale signal at one place, and is then counted anew",
          "[live][progress][law]") {
  const auto watch = std::make_unique<ProgressWatch>();
  uint64_t now = 1;
  CHECK(Repeat(*watch, kStale - 1, now) == 0);
  CHECK(Repeat(*watch, 1, now) == 1);
  CHECK(Repeat(*watch, kStale - 1, now) == 0);
  CHECK(Repeat(*watch, 1, now) == 1);
}

TEST_CASE("one signal at another place, with another stack or after a pause shows that a thread advances",
          "[live][progress][law]") {
  const auto watch = std::make_unique<ProgressWatch>();
  uint64_t now = 1;
  for (const int what : {0, 1, 2}) {
    CAPTURE(what);
    CHECK(Repeat(*watch, kStale - 1, now) == 0);
    if (what == 0) CHECK_FALSE(watch->IsStuck(7, 101, 200, true, ++now));
    if (what == 1) CHECK_FALSE(watch->IsStuck(7, 100, 201, true, ++now));
    if (what == 2) now += kGapNs;
    CHECK(Repeat(*watch, kStale - 1, now) == 0);
    CHECK(Repeat(*watch, 1, now) == 1);
  }
}

TEST_CASE("signals that are not stale neither count nor end the count", "[live][progress][law]") {
  const auto watch = std::make_unique<ProgressWatch>();
  uint64_t now = 1;
  // A loop of one instruction that is sampled often.
  for (uint32_t i = 0; i < 10 * kStale; ++i) CHECK_FALSE(watch->IsStuck(7, 100, 200, false, now += 1000));
  CHECK(Repeat(*watch, kStale - 1, now) == 0);
  CHECK_FALSE(watch->IsStuck(7, 100, 200, false, now += 1000));
  CHECK(Repeat(*watch, 1, now) == 1);
}

TEST_CASE("threads are counted apart", "[live][progress][law]") {
  const auto watch = std::make_unique<ProgressWatch>();
  uint64_t now = 1;
  for (uint32_t i = 0; i + 1 < kStale; ++i) {
    CHECK_FALSE(watch->IsStuck(7, 100, 200, true, now));
    CHECK_FALSE(watch->IsStuck(8, 100, 200, true, now += 1000));
  }
  CHECK(watch->IsStuck(8, 100, 200, true, now));
  CHECK(watch->IsStuck(7, 100, 200, true, now));
}

TEST_CASE("a pause of just the longest gap does not end the count", "[live][progress][law]") {
  const auto watch = std::make_unique<ProgressWatch>();
  uint64_t now = 1;
  CHECK(Repeat(*watch, kStale - 1, now) == 0);
  CHECK(watch->IsStuck(7, 100, 200, true, now + kGapNs));
}

}  // namespace
}  // namespace perfkit::sample
