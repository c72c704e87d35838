// The life of Tasks: one that is replaced ends, and has its place among the ended ones of its name.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "perfkit/task_counter.h"

namespace perfkit {
namespace {

TEST_CASE("tasks: a task that another one replaces has ended", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  TaskCounter::Task task = tasks.Create({"one"});
  { const TaskScope scope(task); }
  task = tasks.Create({"two"});
  CHECK(tasks.Stats().created == 2);
  CHECK(tasks.Stats().ended == 1);
  CHECK(task.number() == 2);
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(!zones.empty());
  CHECK(zones[0].name == "one");
  CHECK(zones[0].ended == 1);
  CHECK(zones[0].run_quantiles.count == 1);
  task = {};
  CHECK(tasks.Stats().ended == 2);
}

TEST_CASE("tasks: a replaced task lives as long as the object that it was exchanged with", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  TaskCounter::Task one = tasks.Create({"one"});
  {
    TaskCounter::Task two = tasks.Create({"two"});
    one = std::move(two);
    CHECK(one.number() == 2);
    CHECK(two.number() == 1);  // NOLINT(bugprone-use-after-move): assignment exchanges them
    CHECK(tasks.Stats().ended == 0);
  }
  CHECK(tasks.Stats().ended == 1);
}

}  // namespace
}  // namespace perfkit
