// Tasks under faults: what a task counts on two threads is right, or said to be missing.
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/task_counter.h"
#include "tests/support/fault_table.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using testing::Faults;
using testing::RunFaults;

constexpr size_t kTaskPages = 30;

// Returns the statistics of a name of tasks, or of a zone.
TaskZoneStats StatsNamed(const std::vector<TaskZoneStats>& all, const std::string& name) {
  for (const TaskZoneStats& stats : all) {
    if (stats.name == name) return stats;
  }
  return {};
}

// `load` has what `totals` has, and is the sum of itself and its zone, with the pages of that.
void CheckTaskZones(const std::vector<TaskZoneStats>& all, const TaskTotals& totals, uint64_t others) {
  const TaskZoneStats load = StatsNamed(all, "load"), expand = StatsNamed(all, "expand");
  CHECK(load.name == "load");
  CHECK(load.calls == totals.runs);
  if (load.total[0].validity.counted() && totals.counts[0].validity.counted()) {
    CHECK(load.total[0].value == totals.counts[0].value);
  }
  if (load.total[0].validity.counted() && load.self[0].validity.counted() && expand.total[0].validity.counted()) {
    CHECK(load.total[0].value == load.self[0].value + expand.total[0].value);
  }
  if (expand.total[0].validity.counted() && !expand.at_least) {
    CHECK(testing::AreFaultsOf(expand.total[0].value, kTaskPages, others));
  }
}

// A task runs on this thread in a zone, then on another thread outside of zones.
absl::Status RunTaskOnTwoThreads(TaskCounter& tasks) {
  testing::FreshPages memory(3 * kTaskPages);
  uint64_t beside = 0;
  TaskCounter::Task task = tasks.Create({"load"});
  const testing::OtherFaults here;
  task.Resume();
  {
    PERFKIT_TASK_ZONE(tasks, "expand");
    memory.Touch(0, kTaskPages);
  }
  task.Suspend();
  memory.Touch(kTaskPages, kTaskPages);  // outside of tasks
  beside = here.Beside(2 * kTaskPages);
  std::thread([&] {
    const testing::OtherFaults there;
    task.Resume();
    memory.Touch(2 * kTaskPages, kTaskPages);
    task.Suspend();
    beside += there.Beside(kTaskPages);
  }).join();
  const TaskTotals totals = task.totals();
  CHECK(totals.runs == 2);
  CHECK(totals.migrations == 1);
  CheckTaskZones(tasks.zones(), totals, beside);
  const Count outside = tasks.Outside().counts[0];
  INFO("task " << totals.counts[0].value << ", outside " << outside.value << ", others " << beside);
  if (outside.validity.counted()) CHECK(outside.value <= kTaskPages + beside + (testing::kSanitized ? 100 : 0));
  if (!totals.counts[0].validity.counted()) return absl::UnavailableError("a task without number says so");
  CHECK(testing::AreFaultsOf(totals.counts[0].value, 2 * kTaskPages, beside));
  return absl::OkStatus();
}

TEST_CASE("a task counts on two threads", "[faults]") {
  RunFaults("`TaskCounter`: open, a task on two threads", [](Faults& faults) {
    faults.Begin();
    TaskCounter tasks({.events = {"page-faults"}});
    return RunTaskOnTwoThreads(tasks);
  });
}

TEST_CASE("tasks of a counter that is open", "[faults]") {
  RunFaults("`TaskCounter`: tasks, group reads", [](Faults& faults) {
    TaskCounter tasks({.events = {"page-faults"}, .only_path = ReadPath::kGroupRead});
    faults.Begin();
    return RunTaskOnTwoThreads(tasks);
  });
}

}  // namespace
}  // namespace perfkit
