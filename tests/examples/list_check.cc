// Runs list as anyone would, and holds its words against the kernel's own numbers of events.
#include <linux/perf_event.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <set>
#include <sstream>
#include <string>

#include "tests/support/run.h"
#include "tests/support/skip.h"

namespace {

using perfkit::testing::Run;
using perfkit::testing::RunCommand;

Run List(const std::string& arguments) { return RunCommand("timeout 120 " LIST " " + arguments + " 2>&1"); }

bool Says(const Run& run, const std::string& text) { return run.output.find(text) != std::string::npos; }

// Lines that begin with two blanks: events.
int Events(const Run& run) {
  std::istringstream lines(run.output);
  int events = 0;
  for (std::string line; std::getline(lines, line);) events += line.starts_with("  ") ? 1 : 0;
  return events;
}

// The line of `event`; "" when there is none.
std::string LineOf(const Run& run, const std::string& event) {
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  " + event + " ")) return line;
  }
  return "";
}

TEST_CASE("each category can be listed alone", "[list]") {
  CHECK(Events(List("hw")) == PERF_COUNT_HW_MAX);
  CHECK(Events(List("cache")) == 42);
  const Run both = List("hw sw");
  CHECK(Events(both) == PERF_COUNT_HW_MAX + 12);
  CHECK(Says(both, "List of hardware events:"));
  CHECK(Says(both, "List of software events:"));
  CHECK_FALSE(Says(both, "List of hw-cache events:"));
}

TEST_CASE("every category is there without arguments, and the exit code is 0", "[list]") {
  const Run run = List("");
  CHECK(run.exit_code == 0);
  for (const char* title : {"hardware", "software", "hw-cache", "hardware breakpoints", "probes"})
    CHECK(Says(run, title));
}

TEST_CASE("software events count, and dummy honestly does not", "[list]") {
  const Run run = List("sw");
  CHECK(LineOf(run, "page-faults").find(" counts ") != std::string::npos);
  CHECK(LineOf(run, "task-clock").find(" counts ") != std::string::npos);
  CHECK(LineOf(run, "dummy").find(" opens ") != std::string::npos);
}

TEST_CASE("hardware events are told as perf stat tells them", "[list]") {
  const Run perf = RunCommand("perf stat -x, -e instructions:u true 2>&1 >/dev/null");
  if (perf.exit_code != 0 || perf.output.empty()) SKIP_TEST("perf is not here");
  const bool theirs = perf.output.find("not supported") == std::string::npos;
  CHECK((LineOf(List("hw"), "instructions").find(" counts ") != std::string::npos) == theirs);
}

TEST_CASE("tracepoints that this user cannot look up are one refused line, with the remedy", "[list]") {
  const bool readable = access("/sys/kernel/tracing/events/sched", R_OK) == 0 ||
                        access("/sys/kernel/debug/tracing/events/sched", R_OK) == 0;
  if (readable) SKIP_TEST("tracefs can be read here");
  const Run run = List("tracepoint");
  CHECK(run.exit_code == 0);
  CHECK(Events(run) == 1);
  CHECK(LineOf(run, "sched:sched_switch").find(" refused ") != std::string::npos);
  CHECK(LineOf(run, "sched:sched_switch").find("tracefs") != std::string::npos);
  CHECK(Says(run, "\nRemedy: "));
}

TEST_CASE("the remedy for many refused events is there once", "[list]") {
  const Run run = List("hw cache");
  if (!Says(run, " refused ")) SKIP_TEST("all events can be used here");
  std::istringstream lines(run.output);
  std::set<std::string> remedies;
  std::string category;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("List of ")) category = line;
    if (line.starts_with("Remedy: ")) CHECK(remedies.insert(category + line).second);
  }
  CHECK_FALSE(remedies.empty());
}

TEST_CASE("what it does not know it refuses", "[list]") {
  CHECK(List("nonsense").exit_code == 2);
  CHECK(List("--help").exit_code == 0);
}

}  // namespace
