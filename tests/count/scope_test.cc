// CounterScope against the kernel's own counters: exact, over many scopes of random size.
#include "perfkit/scope.h"

#include <catch2/catch.hpp>
#include <random>

#include "perfkit/counter.h"
#include "perfkit/format.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

TEST_CASE("scope: switches in 100,000 random scopes are those of getrusage", "[slow]") {
  const auto set = CounterSet::Open({"context-switches", "task-clock"});
  if (!set.ok()) SKIP_TEST(std::string(set.status().message()));
  std::mt19937 random(7);
  ScopeTotals total;
  uint64_t by_usage = 0;
  size_t compared = 0;
  for (int i = 0; i < 100'000; ++i) {
    ScopeTotals one;
    // A switch between the two readings at either end belongs to one and not to the other: such scopes tell nothing.
    const uint64_t outside_before = testing::SwitchesByUsage();
    uint64_t inside_before, inside_after;
    {
      CounterScope scope(*set, one);
      inside_before = testing::SwitchesByUsage();
      if (random() % 64 == 0) {
        testing::Sleep(1);
      } else {
        testing::Spin(random() % 200);
      }
      inside_after = testing::SwitchesByUsage();
    }
    if (outside_before != inside_before || testing::SwitchesByUsage() != inside_after) continue;
    ++compared;
    REQUIRE(one.count(*set, 0).value == inside_after - inside_before);
    by_usage += inside_after - inside_before;
    total.Merge(one);
  }
  CHECK(compared > 90'000);
  CHECK(by_usage > 500);
  CHECK(total.count(*set, 0).value == by_usage);
  CHECK(total.scopes() == compared);
}

TEST_CASE("scope: faults are the pages that were touched, exactly") {
  const auto set = CounterSet::Open({"page-faults"});
  if (!set.ok()) SKIP_TEST(std::string(set.status().message()));
  std::mt19937 random(8);
  testing::FreshPages pages(20'000);
  ScopeTotals total;
  size_t next = 0;
  uint64_t faults = 0;
  while (next + 100 < pages.pages()) {
    ScopeTotals one;
    const size_t count = random() % 100;
    const testing::OtherFaults others;
    {
      CounterScope scope(*set, one);
      pages.Touch(next, count);
    }
    REQUIRE(testing::AreFaultsOf(one.count(*set, 0).value, count, others.Beside(count)));
    faults += one.count(*set, 0).value;
    total.Merge(one);
    next += count;
  }
  CHECK(total.count(*set, 0).value == faults);
}

TEST_CASE("scope: the table of a real set names every event") {
  const auto set =
      CounterSet::Open({"task-clock", "page-faults", "instructions"}, Target::ThisThread(), {.require_all = false});
  REQUIRE(set.ok());
  ScopeTotals total;
  {
    CounterScope scope(*set, total);
    testing::FreshPages(10).Touch(0, 10);
  }
  const std::string table = FormatTable(*set, total);
  INFO(table);
  for (const char* name : {"task-clock", "page-faults", "instructions"}) {
    CHECK(table.find(name) != std::string::npos);
  }
  CHECK((table.find("n/a") != std::string::npos) == !set->reason(2).ok());
}

}  // namespace
}  // namespace perfkit
