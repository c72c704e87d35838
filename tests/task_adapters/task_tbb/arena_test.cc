// Work of TBB as tasks: what threads do in an arena.
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <optional>
#include <thread>

#include "perfkit/task_tbb.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"
#include "tests/task_adapters/task_tbb/workers.h"

namespace perfkit {
namespace {

constexpr size_t kArenaThreads = 4;

// Returns the sum of a count over all names and zones.
uint64_t InTasks(const TaskCounter& tasks, size_t i) {
  uint64_t sum = 0;
  for (const TaskZoneStats& zone : tasks.zones()) sum += zone.self[i].value;
  return sum;
}

// Makes all of the arena's threads meet in it, and touches `pages` on each.
void TouchOnAllThreads(oneapi::tbb::task_arena& arena,
                       std::array<std::optional<testing::FreshPages>, kArenaThreads>& pages) {
  std::atomic<size_t> inside{0};
  arena.execute([&] {
    oneapi::tbb::parallel_for(
        size_t{0}, kArenaThreads,
        [&](size_t i) {
          ++inside;
          while (inside < kArenaThreads) std::this_thread::yield();
          pages[i]->Touch(0, pages[i]->pages());
        },
        oneapi::tbb::simple_partitioner());
  });
}

TEST_CASE("task tbb: what threads do in an arena counts for its name", "[task]") {
  Workers workers(kArenaThreads);
  TaskCounter tasks({.events = {"page-faults", "task-clock"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  REQUIRE(tasks.AttachThread());
  std::array<std::optional<testing::FreshPages>, kArenaThreads> inside, more;
  for (auto* const pages : {&inside, &more}) {
    for (std::optional<testing::FreshPages>& of_thread : *pages) of_thread.emplace(200);
  }
  testing::FreshPages outside(300);
  const testing::OtherFaults of_all(RUSAGE_SELF);
  oneapi::tbb::task_arena arena(kArenaThreads);
  {
    TaskArenaObserver observer(tasks, arena, {"arena"});
    TouchOnAllThreads(arena, inside);
    outside.Touch(0, 300);
    TouchOnAllThreads(arena, more);
    arena.terminate();
    workers.End();
  }
  const uint64_t others = of_all.Beside(2 * kArenaThreads * 200 + 300);
  const uint64_t faults = InTasks(tasks, 0), faults_outside = tasks.Outside().counts[0].value;
  CHECK(testing::AreFaultsOf(faults, 2 * kArenaThreads * 200, others));
  CHECK(testing::AreFaultsOf(faults_outside, 300, others));
  CHECK(testing::AreFaultsOf(faults + faults_outside, 2 * kArenaThreads * 200 + 300, others));
  const TaskStats stats = tasks.Stats();
  CHECK(stats.mismatched + stats.cross_thread + stats.refused_threads == 0);
  CHECK(stats.ended == stats.created);
}

TEST_CASE("task tbb: in nested arenas the inner one counts", "[task]") {
  Workers workers(kArenaThreads);
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  oneapi::tbb::task_arena outer(1), inner(1);
  testing::FreshPages pages(300);
  const testing::OtherFaults of_all(RUSAGE_SELF);
  {
    TaskArenaObserver of_outer(tasks, outer, {"outer"}), of_inner(tasks, inner, {"inner"});
    outer.execute([&] {
      pages.Touch(0, 100);
      inner.execute([&] { pages.Touch(100, 150); });
      pages.Touch(250, 50);
    });
    outer.terminate();
    inner.terminate();
    workers.End();
  }
  const uint64_t others = of_all.Beside(300);
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(zones.size() == 2);
  CHECK(testing::AreFaultsOf(zones[0].total[0].value, 150, others));
  CHECK(testing::AreFaultsOf(zones[1].total[0].value, 150, others));
  CHECK(tasks.Stats().mismatched + tasks.Stats().cross_thread == 0);
}

// An observer may be destroyed while its own thread is inside.
TEST_CASE("task tbb: an observer that ends in its arena ends its part", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  oneapi::tbb::task_arena arena(1);
  testing::FreshPages pages(200);
  arena.execute([&] {
    {
      TaskArenaObserver observer(tasks, arena, {"arena"});
      pages.Touch(0, 100);
    }
    pages.Touch(100, 100);
  });
  CHECK(tasks.Stats().mismatched + tasks.Stats().cross_thread == 0);
  CHECK(tasks.Stats().ended == tasks.Stats().created);
}

}  // namespace
}  // namespace perfkit
