// CounterScope against the kernel's own counters: exact, over many scopes of random size.
#include "perfkit/scope.h"

#include <catch2/catch.hpp>
#include <random>
#include <string>
#include <thread>

#include "perfkit/counter.h"
#include "perfkit/format.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

TEST_CASE("scope: switches in random scopes are those of getrusage", "[slow][law]") {
  const auto set = CounterSet::Open({"context-switches", "task-clock"});
  if (!set.ok()) SKIP_TEST(std::string(set.status().message()));
  std::mt19937 random(7);
  ScopeTotals total;
  uint64_t by_usage = 0;
  size_t compared = 0;
  const int scopes = testing::kSanitized ? 10'000 : 100'000;
  for (int i = 0; i < scopes; ++i) {
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
  CHECK(compared > static_cast<size_t>(scopes) * 9 / 10);
  CHECK(by_usage > static_cast<uint64_t>(scopes) / 200);
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
  const std::string before = FormatTable(*set, total);
  CHECK(before.find("page-faults       # no scope has ended yet") != std::string::npos);
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

TEST_CASE("scope: totals without a number say whether no scope has ended or all ended on other threads") {
  const auto set = CounterSet::Open({"page-faults"});
  REQUIRE(set.ok());
  ScopeTotals total;
  CHECK(FormatTable(*set, total).ends_with("# no scope has ended yet\n"));
  Snapshot begin, end;
  set->Read(begin);
  std::thread([&] { set->Read(end); }).join();
  total.Add(*set, begin, end);
  const std::string crossed = FormatTable(*set, total);
  CHECK(crossed.find("n/a") != std::string::npos);
  CHECK(crossed.find("was read on another thread") != std::string::npos);
  {
    CounterScope scope(*set, total);
    testing::FreshPages(10).Touch(0, 10);
  }
  CHECK(FormatTable(*set, total).find("n/a") == std::string::npos);
}

TEST_CASE("scope: a metric of a real set is the arithmetic of its counts", "[metric]") {
  const auto set = CounterSet::Open({"task-clock", "page-faults"});
  REQUIRE(set.ok());
  ScopeTotals total;
  {
    CounterScope scope(*set, total);
    testing::FreshPages(100).Touch(0, 100);
  }
  const auto rate = Metric::Parse("faults-per-ms = 1e6 * page-faults / task-clock [/ms]");
  REQUIRE(rate.ok());
  const std::vector<TableRow> rows = TableRows(*set, total);
  const MetricValue value = rate->Evaluate(NamedCounts(rows));
  INFO(value.reason);
  REQUIRE(value.has_value());
  const Count clock = total.count(*set, 0), faults = total.count(*set, 1);
  CHECK(faults.value >= 100);
  CHECK(value.value == Approx(1e6 * static_cast<double>(faults.value) / static_cast<double>(clock.value)));
  CHECK(value.coverage == 1);
  CHECK(value.validity.has(Validity::kUserOnly) == faults.validity.has(Validity::kUserOnly));

  const std::string table = FormatTable(*set, total, 0, {&*rate, 1});
  INFO(table);
  CHECK(table.find(" /ms") != std::string::npos);
  CHECK(table.find("faults-per-ms") != std::string::npos);
}

}  // namespace
}  // namespace perfkit
