// Migrations that switch records tell: gaps in the records, and reads that were left by a jump.
#include "src/count/switch_log.h"

#include <array>
#include <catch2/catch.hpp>

#include "perfkit/frame_counter.h"
#include "perfkit/scope.h"
#include "tests/count/sets.h"
#include "tests/support/cpus.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// As an ordinary user's are counted, also if this user is root.
CounterSet MigrationsByRecords() {
  CounterOptions options;
  options.user_only = true;
  return MustOpen(std::array{EventSpec(event::kCpuMigrations), EventSpec("migrations")}, options);
}

TEST_CASE("migrations by records are the moves of the thread", "[switch_log]") {
  const testing::TwoCpus cpus;
  if (!cpus.has_both()) SKIP_TEST("this takes two CPUs");
  cpus.MoveTo(0);
  const CounterSet set = MigrationsByRecords();
  Snapshot begin, end;
  for (const int moves : {0, 1, 2, 7, 100}) {
    cpus.MoveTo(0);
    set.Read(begin);
    for (int i = 1; i <= moves; ++i) cpus.MoveTo(i % 2);
    set.Read(end);
    CHECK(set.Difference(begin, end, 0).value == static_cast<uint64_t>(moves));
    CHECK(set.Difference(begin, end, 0).validity.counted());
  }
}

TEST_CASE("a gap in the records is told, and what begins after it is counted", "[switch_log][law]") {
  const testing::TwoCpus cpus;
  if (!cpus.has_both()) SKIP_TEST("this takes two CPUs");
  cpus.MoveTo(0);
  const CounterSet set = MigrationsByRecords();
  CHECK(set.reason(0).ok());
  for (int round = 0; round < 3; ++round) {
    Snapshot before, middle, later;
    ScopeTotals over, after;
    set.Read(before);
    testing::SwitchAway(count::kSwitchesInRing + 1);
    set.Read(middle);
    cpus.MoveTo((round + 1) % 2);
    set.Read(later);
    for (const size_t i : {0, 1}) {  // a copy too
      CHECK(set.Difference(before, middle, i).validity == Validity{Validity::kNotCounted});
      CHECK(set.Difference(before, later, i).validity == Validity{Validity::kNotCounted});
      CHECK(set.Difference(middle, later, i).validity.counted());
      CHECK(set.Difference(middle, later, i).value == 1);
      CHECK(absl::IsDataLoss(set.reason(i)));
    }
    over.Add(set, middle, later);
    after.Add(set, middle, later);
    over.Add(set, before, later);
    CHECK(over.count(set, 0).validity == Validity{Validity::kNotCounted});
    CHECK(after.count(set, 0).value == 1);
  }
}

// By records for an ordinary user, else by the kernel's own event, which has no gaps.
TEST_CASE("frames have migrations again after a frame with a gap in the records", "[switch_log][law]") {
  FrameCounter frames({.events = {"cpu-migrations"}});
  const FrameId other = frames.DefineFrame("other");
  const auto mark = [&] {
    frames.Mark();
    frames.Mark(other);
  };
  mark();
  if (!frames.reason(0).empty()) SKIP_TEST("no migrations here");
  for (int round = 0; round < 3; ++round) {
    mark();
    testing::SwitchAway(count::kSwitchesInRing + 1);
    mark();
    const auto missing = [&] { return ((frames.last().missing | frames.last(other).missing) & 1) != 0; };
    for (int tries = 0; missing() && tries < 100; ++tries) mark();  // a mark that is interrupted may leave a gap
    CHECK(!missing());
  }
}

}  // namespace
}  // namespace perfkit
