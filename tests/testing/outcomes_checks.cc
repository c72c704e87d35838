// How each framework ends: exit codes, words and reports of the sample programs, run as users run them.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/support/skip.h"

namespace perfkit {
namespace {

struct Run {
  int code = -1;
  std::string out;  // standard output and error
  bool Says(const std::string& text) const { return out.find(text) != std::string::npos; }
};

Run Shell(const std::string& command) {
  Run run;
  FILE* const pipe = popen((command + " 2>&1").c_str(), "r");
  std::array<char, 4096> buffer;
  while (const size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) run.out.append(buffer.data(), got);
  const int status = pclose(pipe);
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return run;
}

Run Catch(const std::string& arguments, const std::string& environment = "") {
  return Shell(environment + " " + PERFKIT_SAMPLES_CATCH2 + " " + arguments);
}

// What such a program allocates by new is in no count: 0 would be wrong.
TEST_CASE("allocations are refused in a program with an operator new of its own", "[allocations]") {
  const Run run = Shell(PERFKIT_OWN_NEW);
  INFO(run.out);
  CHECK(run.code == 0);
  CHECK(run.Says("another malloc or operator new"));
  CHECK(run.Says("Remedy: "));
}

// Version 3 skips tests that cannot be measured, and ends with codes of its own: 4 if all were skipped, from 3.7 on 42 if
// one failed, whatever the number.
constexpr bool kVersion3 = CATCH_VERSION_MAJOR >= 3;
bool Fails(const Run& run, int times = 1) { return run.code == times || (kVersion3 && run.code == 42); }
bool EndsUnmeasured(const Run& run) { return run.code == (kVersion3 ? 4 : 0); }

#define CHECK_SAYS(run, text) \
  do {                        \
    INFO((run).out);          \
    CHECK((run).Says(text));  \
  } while (false)

TEST_CASE("Catch2: pass and fail", "[outcomes]") {
  CHECK(Catch("[pass]").code == 0);
  const Run fail = Catch("[fail]");
  CHECK(Fails(fail));
  // Limit, number, distribution and read path.
  CHECK_SAYS(fail, "allocations 3 (exact, wrapped malloc; 5 times the same");
  CHECK_SAYS(fail, "costs up to 2 allocations");
  CHECK(Fails(Catch("[require]")));
  const Run growth = Catch("[growth]");
  CHECK(Fails(growth));
  CHECK_SAYS(growth, "allocations: grows as n times n^1.000 (n^0.05 is allowed)");
}

// What a failure says of the zones that the region has.
void CheckZones(const Run& run) {
  CHECK(Fails(run));
  CHECK_SAYS(run, "allocations 3 (exact, wrapped malloc");
  CHECK_SAYS(run, "by zone, in a run of its own:");
  CHECK_SAYS(run, "grow: page-faults ");
}

TEST_CASE("Catch2: a failure tells the cost of each zone", "[outcomes]") { CheckZones(Catch("[zones]")); }

TEST_CASE("Catch2: unmeasurable warns and is tallied at the end, or skips, also under negation", "[outcomes]") {
  const Run run = Catch("[unmeasurable]");
  CHECK(EndsUnmeasured(run));
  // The line of the check, not one of perfkit's header.
  CHECK_SAYS(run, "samples_catch2.cc:31: ");
  CHECK_FALSE(run.Says("perfkit/testing.h"));
  CHECK_SAYS(run, "unmeasurable: task-clock: ");
  CHECK_SAYS(run, kVersion3 ? "2 skipped" : "perfkit: 2 checks could not be measured: neither passed nor failed");
  CHECK_FALSE(Catch("[pass]").Says("could not be measured"));
  CHECK(Fails(Catch("'[then fails]'")));
}

TEST_CASE("Catch2: PERFKIT_REQUIRE fails", "[outcomes]") {
  const Run required = Catch("[unmeasurable]", "PERFKIT_REQUIRE=all");
  CHECK(Fails(required, 2));
  CHECK_SAYS(required, "PERFKIT_REQUIRE");
  CHECK(Fails(Catch("[unmeasurable]", "PERFKIT_REQUIRE=cycles,task-clock"), 2));
  CHECK(EndsUnmeasured(Catch("[unmeasurable]", "PERFKIT_REQUIRE=cycles")));
  for (const std::string misprint : {"ALL", "task_clock", "cycles,task-clocks"}) {
    const Run misprinted = Catch("[unmeasurable]", "PERFKIT_REQUIRE=" + misprint);
    CHECK(Fails(misprinted, 2));
    CHECK_SAYS(misprinted, misprint == "ALL" ? "Remedy: write all" : "Remedy: write task-clock");
  }
  CHECK(Catch("[pass]", "PERFKIT_REQUIRE=all").code == 0);
}

TEST_CASE("Catch2: JUnit and XML reports carry the numbers, a terminal does not", "[outcomes]") {
  for (const char* reporter : {"junit", "xml"}) {
    const Run run = Catch(std::string("[pass] -r ") + reporter);
    CHECK_SAYS(run, "perfkit.allocations=3");
    CHECK_SAYS(run, "perfkit.allocations.read_path=wrapped malloc");
    CHECK_SAYS(run, "perfkit.allocations.n160=160");
  }
  CHECK_FALSE(Catch("[pass]").Says("perfkit.allocations"));
}

std::string ScratchPath() {
  char name[] = "/tmp/perfkit-outcomes-XXXXXX";
  close(mkstemp(name));
  unlink(name);
  return name;
}

void CheckBaseline(const std::string& program) {
  const std::string path = ScratchPath();
  const std::string with_file = "PERFKIT_BASELINE=" + path + " ";
  CHECK_SAYS(Shell(with_file + program), "PERFKIT_BASELINE_UPDATE=1");
  CHECK(Shell(with_file + "PERFKIT_BASELINE_UPDATE=1 " + program).code == 0);
  CHECK_SAYS(Shell("cat " + path), "\"allocations\": {\"wrapped malloc\": 3}");
  CHECK(Shell(with_file + "PERFKIT_REQUIRE=all " + program).code == 0);
  Shell("sed -i 's/: 3}/: 2}/' " + path);
  const Run changed = Shell(with_file + program);
  CHECK(Fails(changed));
  CHECK_SAYS(changed, "allocations 3");
  CHECK_SAYS(changed, "baseline 'three' is 2, within 0.5 %");
  unlink(path.c_str());
}

TEST_CASE("Catch2: a baseline is written on request, and holds", "[outcomes]") {
  CheckBaseline(std::string(PERFKIT_SAMPLES_CATCH2) + " [baseline]");
}

#if defined(PERFKIT_SAMPLES_GTEST)

Run Google(const std::string& filter, const std::string& environment = "", const std::string& more = "") {
  return Shell(environment + " " + PERFKIT_SAMPLES_GTEST + " --gtest_filter=Samples." + filter + " " + more);
}

TEST_CASE("GoogleTest: pass and fail", "[outcomes]") {
  CHECK(Google("Passes").code == 0);
  const Run fail = Google("Fails:Samples.FailsByAnAssertion");
  CHECK(fail.code == 1);
  CHECK_SAYS(fail, "2 FAILED TESTS");
  CHECK_SAYS(fail, "Expected: costs up to 2 allocations");
  CHECK_SAYS(fail, "limit up to 2: allocations 3 (exact, wrapped malloc; 5 times the same");
}

TEST_CASE("GoogleTest: a failure tells the cost of each zone", "[outcomes]") { CheckZones(Google("FailsAndHasZones")); }

TEST_CASE("GoogleTest: unmeasurable skips the test, and a later failure still fails it", "[outcomes]") {
  const Run run = Google("Unmeasurable:Samples.UnmeasurableAndNegated");
  CHECK(run.code == 0);
  CHECK_SAYS(run, "[  SKIPPED ] 2 tests");
  CHECK_SAYS(run, "unmeasurable: task-clock: ");
  CHECK_SAYS(run, "samples_gtest.cc:27: Skipped");
  CHECK_FALSE(run.Says("perfkit/testing.h"));
  const Run both = Google("UnmeasurableThenFails");
  CHECK(both.code == 1);
  CHECK_SAYS(both, "1 FAILED TEST");
}

TEST_CASE("GoogleTest: PERFKIT_REQUIRE fails", "[outcomes]") {
  CHECK(Google("Unmeasurable", "PERFKIT_REQUIRE=task-clock").code == 1);
  CHECK(Google("UnmeasurableAndNegated", "PERFKIT_REQUIRE=all").code == 1);
  CHECK(Google("Unmeasurable", "PERFKIT_REQUIRE=cycles").code == 0);
}

TEST_CASE("GoogleTest: the XML report carries the numbers", "[outcomes]") {
  const std::string path = ScratchPath();
  CHECK(Google("Passes", "", "--gtest_output=xml:" + path).code == 0);
  const Run xml = Shell("cat " + path);
  CHECK_SAYS(xml, "<property name=\"perfkit.allocations\" value=\"3\"/>");
  CHECK_SAYS(xml, "<property name=\"perfkit.allocations.read_path\" value=\"wrapped malloc\"/>");
  unlink(path.c_str());
}

TEST_CASE("GoogleTest: a baseline is written on request, and holds", "[outcomes]") {
  CheckBaseline(std::string(PERFKIT_SAMPLES_GTEST) + " --gtest_filter=Samples.Baseline");
}

#else

TEST_CASE("GoogleTest", "[outcomes]") { SKIP_TEST("GoogleTest with GoogleMock is not installed"); }

#endif

}  // namespace
}  // namespace perfkit
