// Runs stat as anyone would, and holds its numbers against perf's and its words against what was asked.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <sstream>
#include <string>

#include "tests/support/run.h"
#include "tests/support/skip.h"

namespace {

using perfkit::testing::Run;
using perfkit::testing::RunCommand;

Run Stat(const std::string& arguments) { return RunCommand("timeout 20 " STAT " " + arguments); }

// The number in front of `event` in stat's table, separators taken out; -1 when there is none.
double NumberOf(const Run& run, const std::string& event) {
  std::istringstream lines(run.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" " + event) == std::string::npos) continue;
    std::erase(line, ',');
    char* end;
    const double number = std::strtod(line.c_str(), &end);
    return end == line.c_str() ? -1 : number;
  }
  return -1;
}

bool Says(const Run& run, const std::string& text) { return run.output.find(text) != std::string::npos; }

TEST_CASE("what the command returns, stat returns", "[stat]") {
  CHECK(Stat("-e page-faults true").exit_code == 0);
  CHECK(Stat("-e page-faults false").exit_code == 1);
  CHECK(Stat("-e page-faults sh -c 'exit 7'").exit_code == 7);
  CHECK(Stat("-e page-faults sh -c 'kill -TERM $$'").exit_code == 128 + 15);
}

TEST_CASE("a program that is not there is named", "[stat]") {
  const Run run = Stat("-e page-faults /no/such/program");
  CHECK(run.exit_code == 127);
  CHECK(Says(run, "/no/such/program"));
}

TEST_CASE("a wrong name is answered with the nearest real one", "[stat]") {
  const Run run = Stat("-e page-fault5 true");
  CHECK(run.exit_code == 2);
  CHECK(Says(run, "'page-fault5'"));
  CHECK(Says(run, "'page-faults'"));
}

TEST_CASE("nothing to count, and numbers that are none, are refused", "[stat]") {
  CHECK(Stat("").exit_code == 2);
  CHECK(Stat("-p 12,x").exit_code == 2);
  CHECK(Stat("--no-such-option").exit_code == 2);
  CHECK(Stat("-t 4194303 -e page-faults -d 1").exit_code == 2);  // no such thread
  CHECK(Stat("--help").exit_code == 0);
}

TEST_CASE("stat and perf stat count the same faults of the same program", "[stat]") {
  const std::string program = "ls -R /usr/include/c++";
  // In turns, and the least of each: pages that are not in memory yet are mapped one by one.
  double theirs = 1e9, ours = 1e9;
  for (int i = 0; i < 3; ++i) {
    const Run perf = RunCommand("perf stat -x, -e page-faults:u " + program + " 2>&1 >/dev/null");
    theirs = std::min(theirs, std::atof(perf.output.c_str()));
    if (perf.exit_code != 0 || theirs <= 0) SKIP_TEST("perf is not here: " + perf.output.substr(0, 80));
    ours = std::min(ours, NumberOf(Stat("-e page-faults:u " + program + " 2>&1 | tail -4"), "page-faults:u"));
  }
  CHECK(ours == Approx(theirs).epsilon(0.1));  // the loader places things anew each time
}

TEST_CASE("the clock of a busy command is its time", "[stat]") {
  const Run run = Stat("-e task-clock,page-faults sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done'");
  const double clock_ns = NumberOf(run, "task-clock");
  CHECK(clock_ns > 1e7);
  CHECK(clock_ns < 1e10);
  CHECK(Says(run, "CPUs used"));
}

TEST_CASE("another process and its threads can be counted for a while", "[stat]") {
  const Run run = RunCommand(
      "sleep 60 >/dev/null 2>&1 & "
      "until grep -q '(sleep) S' /proc/$!/stat; do :; done; "  // its start is over, and so are its faults
      "timeout 20 " STAT " -e page-faults,task-clock -d 0.1 -p $!; kill $!");
  CHECK(NumberOf(run, "page-faults") == 0);
  CHECK(Says(run, "Total time"));
}

TEST_CASE("how each event was read is told on request", "[stat]") {
  CHECK(Says(Stat("--verbose -e page-faults true"), "group read"));
}

}  // namespace
