// Forks while sets of counters are opened and closed on other threads.
#include <catch2/catch.hpp>

#include "perfkit/counter.h"
#include "perfkit/warmup.h"
#include "tests/support/fork_storm.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

TEST_CASE("children that are born while sets come and go hold nothing of them", "[counter_set][fork][many]") {
  if (testing::kSanitized) SKIP_TEST("sanitizers do not stand forks among threads");
  const std::vector<EventSpec> events = {"page-faults", "task-clock", "context-switches", "cpu-migrations"};
  const testing::Forked forked = testing::ForkWhile(
      [&] {
        const Warmup warm(events);
        const auto mine = CounterSet::Open(events), all = CounterSet::Open(events, Target::AllThreads());
      },
      300);
  CHECK(forked.failed == 0);
  CHECK(forked.holding == 0);
  CHECK(forked.rounds > 10);
}

}  // namespace
}  // namespace perfkit
