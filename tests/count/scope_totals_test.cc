// Sums of made-up snapshots: what adds up, what is left out, and what the sum is worth.
#include <catch2/catch.hpp>

#include "perfkit/counter.h"
#include "perfkit/scope.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

// A set of three events without a kernel: plain, multiplexable, and never counted.
class MadeUpReader : public CounterReader {
 public:
  MadeUpReader() {
    size_ = 3;
    multiplexable_ = 0b010;
    fixed_flags_[0] = {Validity::kUserOnly};
    fixed_flags_[2] = {Validity::kNotCounted};
  }
};

Snapshot At(uint64_t value, uint64_t enabled = 0, uint64_t running = 0) {
  Snapshot snapshot{};
  snapshot.values = {value, value * 10, 0};
  snapshot.times[1] = {enabled, running};
  return snapshot;
}

TEST_CASE("scope totals: sums of differences, times included") {
  const MadeUpReader reader;
  ScopeTotals total;
  total.Add(reader, At(5, 100, 100), At(7, 200, 150));
  total.Add(reader, At(100, 1000, 500), At(101, 1300, 650));
  CHECK(total.scopes() == 2);
  CHECK(total.count(reader, 0).value == 3);
  CHECK(total.count(reader, 0).validity == Validity{Validity::kUserOnly});
  CHECK(total.count(reader, 0).coverage() == 1);
  const Count multiplexed = total.count(reader, 1);
  CHECK(multiplexed.value == 30);
  CHECK(multiplexed.time_enabled_ns == 400);
  CHECK(multiplexed.time_running_ns == 200);
  CHECK(multiplexed.validity.has(Validity::kMultiplexed));
  CHECK(!total.count(reader, 2).validity.counted());
  CHECK(!total.count(reader, 3).validity.counted());
  CHECK(!total.count(reader, kMaxEvents).validity.counted());
}

TEST_CASE("scope totals: a pair over two threads adds nothing but to cross_thread") {
  const MadeUpReader reader;
  ScopeTotals total;
  Snapshot elsewhere = At(1'000'000);
  elsewhere.other_thread = true;
  total.Add(reader, At(5), elsewhere);
  CHECK(total.cross_thread() == 1);
  CHECK(total.scopes() == 0);
  CHECK(total.count(reader, 0).validity == Validity{Validity::kOtherThread});
  total.Add(reader, elsewhere, At(5));
  CHECK(total.cross_thread() == 2);
  CHECK(total.scopes() == 0);
  CHECK(total.count(reader, 0).validity == Validity{Validity::kOtherThread});
  elsewhere.missing = 0b011;  // As of a set that cannot read there at all.
  total.Add(reader, elsewhere, At(5));
  total.Add(reader, At(5), At(6));
  CHECK(total.cross_thread() == 3);
  CHECK(total.scopes() == 1);
  CHECK(total.count(reader, 0).validity == Validity{Validity::kUserOnly});
  CHECK(total.count(reader, 0).value == 1);
}

TEST_CASE("scope totals: a hole makes the sum no number, for that event alone") {
  const MadeUpReader reader;
  ScopeTotals total;
  total.Add(reader, At(1), At(2));
  Snapshot holed = At(9);
  holed.missing = 0b001;
  total.Add(reader, At(2), holed);
  CHECK(!total.count(reader, 0).validity.counted());
  CHECK(total.count(reader, 1).value == 80);
  ScopeTotals merged;
  merged.Add(reader, At(1), At(2));
  merged.Merge(total);
  CHECK(!merged.count(reader, 0).validity.counted());
  CHECK(merged.count(reader, 1).value == 90);
}

TEST_CASE("scope totals: flags of any scope are flags of the sum") {
  const MadeUpReader reader;
  ScopeTotals total;
  Snapshot moved = At(2);
  moved.epoch = 4;
  moved.cpu = 1;
  moved.fallback = 0b001;
  total.Add(reader, At(1), moved);
  total.Add(reader, At(1), At(1));
  const Validity validity = total.count(reader, 0).validity;
  CHECK(validity.has(Validity::kSwitched));
  CHECK(validity.has(Validity::kMigrated));
  CHECK(validity.has(Validity::kFallback));
  CHECK(!total.count(reader, 1).validity.has(Validity::kFallback));
}

TEST_CASE("scope totals: each flag counts alone") {
  const MadeUpReader reader;
  Snapshot moved = At(2), fallen_back = At(2), switched = At(2);
  switched.epoch = 4;
  moved.cpu = 1;
  fallen_back.fallback = 0b001;
  const auto flags_of = [&](const Snapshot& end) {
    ScopeTotals total;
    total.Add(reader, At(1), end);
    return total.count(reader, 0).validity;
  };
  const Validity plain = flags_of(At(2));
  CHECK(flags_of(switched) == (plain | Validity{Validity::kSwitched}));
  CHECK(flags_of(moved) == (plain | Validity{Validity::kMigrated}));
  CHECK(flags_of(fallen_back) == (plain | Validity{Validity::kFallback}));
  for (const auto flag : {Validity::kSwitched, Validity::kMigrated, Validity::kFallback}) CHECK(!plain.has(flag));
}

TEST_CASE("scope totals: what restricts one set's counts restricts the sum with another's") {
  struct Restricted : CounterReader {
    Restricted(Validity flags, uint8_t kind) {
      size_ = 1;
      fixed_flags_[0] = flags;
      kinds_[0] = {kind};
    }
  };
  const Restricted all({}, 0), user({Validity::kUserOnly}, CountKind::kUserOnly);
  const Restricted some({Validity::kSomeCpus}, CountKind::kSomeCpus);
  ScopeTotals sum, of_user, of_some;
  sum.Add(all, At(1), At(2));
  of_user.Add(user, At(1), At(2));
  of_some.Add(some, At(1), At(2));
  CHECK(sum.count(all, 0).validity == Validity{});
  sum.Merge(of_user);
  CHECK(sum.count(all, 0).validity == Validity{Validity::kUserOnly});
  sum.Merge(of_some);
  CHECK(sum.count(all, 0).validity == Validity{Validity::kUserOnly | Validity::kSomeCpus});
  CHECK(sum.count(all, 0).value == 3);
  for (const auto& [a, b] : {std::pair(CountKind::kUntimed, CountKind::kTimed),
                             std::pair(CountKind::kPerfClock, CountKind::kUsageClock)}) {
    const Restricted first({}, a), second({}, b);
    ScopeTotals mixed, other;
    mixed.Add(first, At(1), At(2));
    CHECK(mixed.count(first, 0).validity.counted());
    other.Add(second, At(1), At(2));
    CHECK(other.count(second, 0).validity.counted());
    mixed.Merge(other);
    CHECK_FALSE(mixed.count(first, 0).validity.counted());
  }
}

TEST_CASE("scope totals: times by perf and by getrusage have no sum; counts of both have") {
  CounterOptions by_usage;
  by_usage.only_path = ReadPath::kUsage;
  absl::StatusOr<CounterSet> perf = CounterSet::Open({"task-clock", "context-switches"});
  absl::StatusOr<CounterSet> usage =
      CounterSet::Open({"task-clock", "context-switches"}, Target::ThisThread(), by_usage);
  if (!perf.ok() || perf->path(0) == ReadPath::kUsage) SKIP_TEST("perf is not permitted");
  REQUIRE(usage.ok());
  ScopeTotals total, other;
  { const CounterScope scope(*perf, total); }
  { const CounterScope scope(*usage, other); }
  CHECK(total.count(*perf, 0).validity.counted());
  CHECK(other.count(*usage, 0).validity.counted());
  total.Merge(other);
  CHECK_FALSE(total.count(*perf, 0).validity.counted());
  CHECK(total.count(*perf, 1).validity.counted() == perf->reason(1).ok());
}

TEST_CASE("scope totals: nothing measured is not 0") {
  CHECK(!ScopeTotals{}.count(MadeUpReader{}, 0).validity.counted());
}

TEST_CASE("scope totals: merging equals adding in one place") {
  const MadeUpReader reader;
  ScopeTotals a, b, both;
  for (uint64_t i = 0; i < 100; ++i) {
    const Snapshot begin = At(i * 7, i * 10, i * 9), end = At(i * 7 + i % 5, i * 10 + 8, i * 9 + 4);
    (i % 3 == 0 ? a : b).Add(reader, begin, end);
    both.Add(reader, begin, end);
  }
  a.Merge(b);
  CHECK(a.scopes() == both.scopes());
  for (size_t i = 0; i < 2; ++i) {
    CHECK(a.count(reader, i).value == both.count(reader, i).value);
    CHECK(a.count(reader, i).time_running_ns == both.count(reader, i).time_running_ns);
    CHECK(a.count(reader, i).validity == both.count(reader, i).validity);
  }
}

}  // namespace
}  // namespace perfkit
