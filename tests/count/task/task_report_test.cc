// The report of tasks: each number of it is one of zones() or Outside().
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "perfkit/metric.h"
#include "perfkit/task_counter.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// The rows of one table, without blanks before the label: the cells of each, by its label.
using TextRows = std::map<std::string, std::vector<std::string>>;

// Returns the table whose head begins with `head`. A label ends before two blanks.
TextRows TableOf(const std::string& report, const std::string& head) {
  TextRows rows;
  std::istringstream lines(report);
  bool is_in_table = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) is_in_table = false;
    if (is_in_table) {
      const size_t begin = line.find_first_not_of(' '), end = line.find("  ", begin);
      std::istringstream cells(line.substr(std::min(end, line.size())));
      std::vector<std::string>& row = rows[line.substr(begin, end - begin)];
      for (std::string cell; cells >> cell;) row.push_back(cell);
    }
    if (line.starts_with(head)) is_in_table = true;
  }
  return rows;
}

std::string Milliseconds(uint64_t ns) {
  const uint64_t hundredths = (ns + 5000) / 10'000;
  return absl::StrFormat("%s.%02d", FormatNumber(hundredths / 100), hundredths % 100);
}

const TaskZoneStats& ZoneNamed(const std::vector<TaskZoneStats>& zones, std::string_view name) {
  for (const TaskZoneStats& zone : zones) {
    if (zone.name == name) return zone;
  }
  FAIL("no zone " << name);
  return zones[0];
}

// Runs a part of `task`, with a zone that touches `pages`.
void RunPart(TaskCounter& tasks, TaskCounter::Task& task, size_t pages) {
  const TaskScope scope(task);
  PERFKIT_TASK_ZONE(tasks, "touch");
  testing::FreshPages(pages).Touch(0, pages);
}

TEST_CASE("task report: its cells are the numbers of zones() and Outside()", "[task]") {
  TaskCounter tasks({.events = {"page-faults", "task-clock", "nonesuch"}});
  if (!tasks.reason(0).empty() || !tasks.reason(1).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task running = tasks.Create({"mesh"});
  for (int i = 0; i < 3; ++i) {
    TaskCounter::Task task = tasks.Create({"texture"});
    std::thread([&] { RunPart(tasks, task, 100); }).join();
    std::thread([&] { RunPart(tasks, task, 100); }).join();
  }
  RunPart(tasks, running, 10);
  testing::FreshPages(50).Touch(0, 50);
  RunPart(tasks, running, 10);

  const std::vector<Metric> metrics = {*Metric::Parse("a-page = page-faults / 100 [faults]"),
                                       *Metric::Parse("ipc = instructions / page-faults")};
  const std::string report = tasks.FormatTasks(metrics);
  INFO(report);
  const std::vector<TaskZoneStats> zones = tasks.zones();
  const TaskZoneStats& texture = ZoneNamed(zones, "texture");
  const TextRows runs = TableOf(report, "run, ms");
  CHECK(texture.created == 3);
  CHECK(texture.migrations == 3);
  CHECK(runs.at("texture") ==
        std::vector<std::string>{"3", "3", "6", "3", Milliseconds(texture.run_ns), Milliseconds(texture.self_run_ns),
                                 Milliseconds(texture.run_quantiles.p50), Milliseconds(texture.run_quantiles.p95),
                                 Milliseconds(texture.run_quantiles.p99), Milliseconds(texture.run_quantiles.max)});
  const TaskZoneStats& mesh = ZoneNamed(zones, "mesh");
  CHECK(mesh.created == 1);
  CHECK(mesh.ended == 0);
  CHECK(runs.at("mesh") == std::vector<std::string>{"1", "0", "2", "0", Milliseconds(mesh.run_ns),
                                                    Milliseconds(mesh.self_run_ns), "n/a", "n/a", "n/a", "n/a"});
  CHECK(runs.at("outside of tasks") == std::vector<std::string>{Milliseconds(tasks.Outside().run_ns)});

  const TextRows waits = TableOf(report, "waits, ms");
  REQUIRE(waits.at("texture").size() == 7);
  CHECK(waits.at("texture")[2] == Milliseconds(texture.wait_ns));
  CHECK(waits.at("texture")[6] == Milliseconds(texture.wait_quantiles.max));

  const TextRows faults = TableOf(report, "page-faults");
  CHECK(faults.at("texture")[1] == FormatNumber(texture.total[0].value));
  CHECK(faults.at("texture")[6] == FormatNumber(texture.quantiles[0].max));
  CHECK(texture.total[0].value >= 600);
  CHECK(faults.at("mesh")[1] == FormatNumber(mesh.total[0].value));
  CHECK(faults.at("outside of tasks") == std::vector<std::string>{FormatNumber(tasks.Outside().counts[0].value)});

  CHECK(TableOf(report, "a-page, faults").at("mesh")[1] ==
        absl::StrFormat("%.2f", static_cast<double>(mesh.total[0].value) / 100));
  CHECK(report.find("no value: ipc: instructions: not among the counted events\n") != std::string::npos);
  CHECK(report.find("not counted: nonesuch: ") != std::string::npos);
  CHECK(report.find("\nnonesuch") == std::string::npos);
  CHECK(tasks.FormatTasks().find("a-page") == std::string::npos);
}

TEST_CASE("task report: a task that sleeps while it runs is off the CPU", "[task][law]") {
  TaskCounter tasks({.events = {"task-clock"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  TaskCounter::Task task = tasks.Create({"io"});
  {
    const TaskScope scope(task);
    testing::Sleep(30'000'000);
  }
  const TextRows waits = TableOf(tasks.FormatTasks(), "waits, ms");
  CHECK(std::stod(waits.at("io")[1]) >= 20);
  CHECK(waits.at("io")[2] == "0.00");

  TaskCounter without({.events = {"page-faults"}});
  TaskCounter::Task unknown = without.Create({"io"});
  { const TaskScope scope(unknown); }
  CHECK(TableOf(without.FormatTasks(), "waits, ms").at("io")[1] == "n/a");
}

TEST_CASE("task report: what is not counted is n/a, and a sum without it a lower bound", "[task][law]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  const auto suspend_elsewhere = [](TaskCounter::Task task) {
    task.Resume();
    std::thread([&] { task.Suspend(); }).join();
  };
  const auto run_here = [&tasks](TaskCounter::Task task) {
    const TaskScope scope(task);
    PERFKIT_TASK_ZONE(tasks, "zone");
    testing::Spin(1000);
  };
  run_here(tasks.Create({"good"}));
  run_here(tasks.Create({"part"}));
  suspend_elsewhere(tasks.Create({"part"}));
  suspend_elsewhere(tasks.Create({"foreign"}));
  run_here(tasks.Create({"good"}));

  const std::vector<TaskZoneStats> zones = tasks.zones();
  uint64_t ended = 0;
  for (const TaskZoneStats& zone : zones) ended += zone.ended;
  CHECK(ended == 5);
  CHECK(tasks.Stats().ended == 5);
  const TaskZoneStats& foreign = ZoneNamed(zones, "foreign");
  CHECK(foreign.at_least);
  CHECK(foreign.ended == 1);
  CHECK(foreign.run_quantiles.count == 0);
  CHECK(foreign.total[0].validity == Validity{Validity::kOtherThread});
  CHECK(foreign.self[0].validity == Validity{Validity::kOtherThread});
  CHECK(ZoneNamed(zones, "part").at_least);
  CHECK(ZoneNamed(zones, "part").total[0].validity.counted());
  CHECK(ZoneNamed(zones, "part").ended == 2);
  CHECK(ZoneNamed(zones, "part").run_quantiles.count == 1);
  for (const TaskZoneStats& zone : zones) {
    if (zone.depth == 1) CHECK(zone.at_least == (zones[zone.parent].name == "part"));
  }
  CHECK(!ZoneNamed(zones, "good").at_least);

  const std::string report = tasks.FormatTasks();
  INFO(report);
  const std::string none = "n/a";
  const TextRows runs = TableOf(report, "run, ms"), faults = TableOf(report, "page-faults");
  CHECK(runs.at("foreign") == std::vector<std::string>{"1", "1", "1", "0", none, none, none, none, none, none});
  CHECK(faults.at("foreign") == std::vector<std::string>{"1", none, none, none, none, none, none});
  const TextRows waits = TableOf(report, "waits, ms");
  CHECK(waits.at("foreign") == std::vector<std::string>{"1", none, none, none, none, none, none});
  CHECK(runs.at("part")[4].starts_with(">="));
  CHECK(runs.at("part")[5].starts_with(">="));
  CHECK(faults.at("part")[1].starts_with(">="));
  for (const std::string& cell : runs.at("good")) CHECK((cell != none && !cell.starts_with(">=")));
  CHECK(report.find("\n2 tasks that another thread suspended, ") != std::string::npos);
}

TEST_CASE("task report: a task that ran on a refused thread alone has no sums", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}, .max_threads = 0});
  {
    TaskCounter::Task task = tasks.Create({"refused"});
    const TaskScope scope(task);
  }
  const std::string report = tasks.FormatTasks();
  INFO(report);
  CHECK(TableOf(report, "run, ms").at("refused")[4] == "n/a");
  CHECK(!tasks.zones()[0].total[0].validity.counted());
  CHECK(report.find("\n1 thread not counted (more than max_threads") != std::string::npos);
}

TEST_CASE("task report: without tasks it says what is not counted, and wrong use is told", "[task]") {
  TaskCounter tasks({.events = {"nonesuch"}, .max_zones = 1});
  const std::string empty = tasks.FormatTasks();
  CHECK(empty.starts_with("not counted: nonesuch: "));
  CHECK(empty.find("run, ms") == std::string::npos);
  TaskCounter::Task task = tasks.Create({"first"}), more = tasks.Create({"second"});
  task.Suspend();
  std::thread([&] { task.Resume(); }).join();
  const std::string report = tasks.FormatTasks();
  INFO(report);
  CHECK(report.find("\n1 call ignored: Resume of a task that runs, Suspend of one") != std::string::npos);
  CHECK(report.find("\n1 name or zone beyond max_zones") != std::string::npos);
}

TEST_CASE("task report: a task that lost a part to one that interrupted it says so", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  if (!tasks.reason(0).empty()) SKIP_TEST(std::string(tasks.reason(0)));
  {
    TaskCounter::Task outermost = tasks.Create({"outermost"}), outer = tasks.Create({"outer"});
    TaskCounter::Task inner = tasks.Create({"inner"});
    outermost.Resume();
    outer.Resume();
    testing::FreshPages(10).Touch(0, 10);
    inner.Resume();
    std::thread([&] { inner.Suspend(); }).join();
    outer.Suspend();
    outermost.Suspend();
    CHECK(!outer.totals().counts[0].validity.counted());
    CHECK(outermost.totals().counts[0].validity.counted());
  }
  CHECK(tasks.Stats().cross_thread == 1);
  const std::vector<TaskZoneStats> zones = tasks.zones();
  CHECK(ZoneNamed(zones, "outer").at_least);
  CHECK(ZoneNamed(zones, "outer").run_quantiles.count == 0);
  CHECK(ZoneNamed(zones, "outer").wait_quantiles.count == 0);
  CHECK(ZoneNamed(zones, "outer").quantiles[0].count == 0);
  CHECK(!ZoneNamed(zones, "outermost").at_least);
  CHECK(ZoneNamed(zones, "outermost").run_quantiles.count == 1);

  const std::vector<Metric> metrics = {*Metric::Parse("faults = page-faults")};
  const std::string report = tasks.FormatTasks(metrics);
  INFO(report);
  CHECK(TableOf(report, "run, ms").at("outer")[4].starts_with(">="));
  CHECK(TableOf(report, "page-faults").at("outer")[1].starts_with(">="));
  const std::vector<std::string> cells = TableOf(report, "faults").at("outer");
  REQUIRE(cells.size() == 5);
  CHECK(cells[2] == "(part)");
  CHECK(TableOf(report, "faults").at("outermost").size() == 3);
}

TEST_CASE("tasks: a task without a name is shown with one", "[task]") {
  TaskCounter tasks({.events = {"page-faults"}});
  const TaskCounter::Task empty = tasks.Create({""}), none = tasks.Create({}), named = tasks.Create({"named"});
  const std::vector<TaskZoneStats> zones = tasks.zones();
  REQUIRE(zones.size() >= 2);
  for (const TaskZoneStats& zone : zones) CHECK(zone.name != "");
  CHECK(std::ranges::count(zones, std::string_view("(no name)"), &TaskZoneStats::name) == 1);
  CHECK(tasks.FormatTasks().find("(no name)") != std::string::npos);
}

}  // namespace
}  // namespace perfkit
