// Whole programs and what they print: JSON for tools, tables for people, and an unchanged program.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <regex>
#include <string>

#include "src/benchmark/preload/library.h"
#include "tests/benchmark/json.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

using Catch::Matchers::Contains;
using testing::kSanitized;
using Leaves = testing::JsonReader::Leaves;

struct Output {
  int code;
  std::string text;
};

// Runs a shell command line; its standard output.
Output Run(const std::string& line) {
  std::FILE* const pipe = popen(line.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text};
}

// The report's leaves, with the ":u" of what an ordinary user counts taken off.
Leaves Json(const std::string& line) {
  const Output output = Run(line + " --benchmark_format=json 2>/dev/null");
  REQUIRE(output.code == 0);
  const std::optional<Leaves> leaves = testing::JsonReader::Read(output.text);
  INFO(output.text);
  REQUIRE(leaves);
  Leaves plain;
  for (const auto& [path, value] : *leaves) {
    plain[path.ends_with(":u") ? path.substr(0, path.size() - 2) : path] = value;
  }
  return plain;
}

std::string PathOf(const Leaves& leaves, const std::string& name) {
  for (const auto& [path, value] : leaves) {
    if (path.ends_with("/name") && value == name) return path.substr(0, path.size() - 5);
  }
  FAIL("no benchmark " << name);
  return "";
}

double Number(const Leaves& leaves, const std::string& name, const std::string& key) {
  const auto found = leaves.find(PathOf(leaves, name) + '/' + key);
  return found == leaves.end() ? -1 : testing::FaultsAnIteration(std::atof(found->second.c_str()));
}

constexpr char kLoadedFirst[] = "a sanitizer's library must be loaded before any other";

const std::string kPreloaded = "LD_PRELOAD=" PERFKIT_PRELOAD " " PERFKIT_PLAIN;

TEST_CASE("the JSON reader is strict") {
  CHECK(testing::JsonReader::Read(R"({"a": [1, {"b": "x\"y"}], "c": -2.5e+3})") ==
        Leaves{{"a/0", "1"}, {"a/1/b", R"(x\"y)"}, {"c", "-2.5e+3"}});
  for (const char* text : {"", "NaN", R"({"a": nan})", R"({"a": 1,})", R"({"a" 1})", "[1, 2", "1 2", R"("a)", "inf"}) {
    CAPTURE(text);
    CHECK(!testing::JsonReader::Read(text));
  }
}

TEST_CASE("JSON holds numbers for what was measured, and nothing for the rest") {
  const Leaves leaves = Json("PERFKIT_COUNTERS=page-faults,allocations " PERFKIT_COUNTED);
  for (const char* name : {"Touch/iterations:16", "Touch/iterations:16/threads:4"}) {
    CHECK(Number(leaves, name, "page-faults") == 256);
    CHECK(Number(leaves, name, "allocations") == -1);
    // What compare.py joins rows by and compares.
    for (const char* key : {"name", "run_name", "run_type", "real_time", "cpu_time", "time_unit", "iterations"}) {
      CHECK(leaves.contains(PathOf(leaves, name) + '/' + key));
    }
    CHECK_THAT(leaves.at(PathOf(leaves, name) + "/label"), Contains("allocations n/a ("));
  }
  CHECK_THAT(leaves.at("context/perfkit"), Contains("Linux"));
  CHECK_THAT(leaves.at("context/perfkit_counters"), Contains("allocations n/a ("));
  CHECK(leaves.at("context/perfkit_pauses") == "excluded from all counts, as from the times");
}

// Google Benchmark's own tool on two of our reports. Of numpy and scipy it uses two functions; these do.
TEST_CASE("compare.py compares reports whose counters differ") {
  const std::string tool = "/usr/share/benchmark/compare.py";
  if (access(tool.c_str(), R_OK) != 0 || Run("python3 -c 1 2>&1").code != 0) {
    SKIP_TEST("python3 and libbenchmark-tools are not installed");
  }
  const testing::TempFolder folder;
  folder.Write("/numpy.py", "class array(list):\n  def any(self): return len(self) > 0\n");
  folder.Write("/scipy/__init__.py", "");
  folder.Write("/scipy/stats.py",
               "from numpy import array\ndef gmean(rows): return array(rows[0])\nmannwhitneyu = None\n");
  const std::string old_report = folder.path() + "/old.json", new_report = folder.path() + "/new.json";
  Json("PERFKIT_COUNTERS=page-faults,instructions " PERFKIT_COUNTED " --benchmark_out=" + old_report);
  Json("PERFKIT_COUNTERS=minor-faults " PERFKIT_COUNTED " --benchmark_out=" + new_report);
  const Output output = Run("PYTHONPATH=" + folder.path() + " PYTHONDONTWRITEBYTECODE=1 python3 " + tool +
                            " --no-color benchmarks " + old_report + " " + new_report + " 2>&1");
  CHECK(output.code == 0);
  for (const char* name : {"\nTouch/iterations:16 ", "\nTouch/iterations:16/threads:4 ", "\nLabelled/iterations:16 "}) {
    CHECK_THAT(output.text, Contains(name));
  }
}

TEST_CASE("the table for people says n/a where there is no number, and why once") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer's runtime faults too, and a table is held to its letters");
  const Output output = Run("PERFKIT_COUNTERS=page-faults,allocations " PERFKIT_COUNTED " 2>&1");
  CHECK_THAT(output.text, Contains("allocations n/a (this program does not link perfkit::testing_alloc)"));
  std::string rows = std::regex_replace(output.text, std::regex("page-faults:u"), "page-faults");
  rows = std::regex_replace(rows, std::regex(" +[0-9]+(\\.[0-9]+)? ns"), " T ns");
  rows = std::regex_replace(rows, std::regex(" {2,}"), " ");
  CHECK_THAT(rows, Contains("\nTouch/iterations:16 T ns T ns 16 page-faults=256 "
                            "allocations n/a (see perfkit_counters)\n"));
  CHECK_THAT(rows, Contains("\nTouch/iterations:16/threads:4 T ns T ns 64 page-faults=256 "
                            "allocations n/a (see perfkit_counters)\n"));
  CHECK_THAT(rows, Contains("\nLabelled/iterations:16 T ns T ns 16 page-faults=0 mine; "
                            "allocatons n/a (no event or PMU is called 'allocatons'; did you mean 'allocations'?)\n"));
}

TEST_CASE("flags choose the counters, and a wrong one stops the program") {
  const Leaves leaves = Json(PERFKIT_COUNTED " --perfkit_counters=minor-faults");
  CHECK(Number(leaves, "Touch/iterations:16", "minor-faults") == 256);
  CHECK(Number(leaves, "Touch/iterations:16", "page-faults") == -1);
  CHECK_THAT(leaves.at("context/perfkit_counters"), Contains("minor-faults"));
  const Output wrong = Run(PERFKIT_COUNTED " --perfkit_counters=cylces 2>&1");
  CHECK(wrong.code == 1);
  CHECK_THAT(wrong.text, Contains("did you mean 'cycles'"));
  CHECK(Run(PERFKIT_COUNTED " --perfkit_cuonters=cycles 2>&1").code == 1);
  CHECK_THAT(Run(PERFKIT_COUNTED " --help").text, Contains("--perfkit_counters="));
}

TEST_CASE("a flag without its list, and a flag for the stock main, are told what to write") {
  const Output half = Run(PERFKIT_COUNTED " --perfkit_counters cycles 2>&1");
  CHECK(half.code == 1);
  CHECK_THAT(half.text, Contains("--perfkit_counters=page-faults"));
  const Output stock = Run(PERFKIT_UNWRAPPED " --perfkit_counters=cycles 2>&1");
  CHECK(stock.code == 1);
  CHECK_THAT(stock.text, Contains("BENCHMARK_MAIN() does not know '--perfkit_counters=cycles'") &&
                             Contains("set PERFKIT_COUNTERS"));
}

TEST_CASE("allocations are counted where the program wraps malloc") {
  const Leaves leaves = Json("PERFKIT_COUNTERS=allocations,page-faults " PERFKIT_ALLOCATING);
  for (const char* name : {"Allocate/iterations:16", "Allocate/iterations:16/threads:8"}) {
    CHECK(Number(leaves, name, "allocations") == 100);
    CHECK(!leaves.contains(PathOf(leaves, name) + "/label"));
  }
  CHECK_THAT(leaves.at("context/perfkit_counters"), Contains("allocations by wrapped malloc"));
  CHECK(leaves.at(PathOf(leaves, "Move/iterations:1") + "/label") ==
        "allocations n/a (began and ended on different threads)");
}

// Seven, on each of the paths that reads may take: what a read calls itself is taken off.
TEST_CASE("seven system calls a round are seven") {
  const std::string mount = "unshare --mount sh -c 'mount -t tracefs nodev /sys/kernel/tracing && ";
  if (Run(mount + "true' 2>/dev/null").code != 0) SKIP_TEST("this user may not mount tracefs");
  for (const char* list :
       {"raw_syscalls:sys_enter", "syscalls:sys_enter_getppid", "raw_syscalls:sys_enter,cpu-clock"}) {
    CAPTURE(list);
    const Leaves leaves = Json(mount + "PERFKIT_COUNTERS=" + list + " " PERFKIT_COUNTED " --benchmark_format=json'");
    const std::string event = std::string(list).substr(0, std::string(list).find(','));
    CHECK(Number(leaves, "Calls/iterations:16", event) == 7);
    CHECK(Number(leaves, "Calls/iterations:16/threads:4", event) == 7);
  }
}

TEST_CASE("without the link options pauses are counted, and the head says so") {
  const Leaves leaves = Json("PERFKIT_COUNTERS=page-faults " PERFKIT_UNWRAPPED);
  CHECK(Number(leaves, "Paused/iterations:16", "page-faults") == 8);
  CHECK_THAT(leaves.at("context/perfkit_pauses"), Contains("counted too") && Contains("--wrap"));
}

TEST_CASE("an unchanged program gets counters by preloading") {
  if (testing::kSanitized) SKIP_TEST(kLoadedFirst);
  const Leaves leaves = Json("PERFKIT_COUNTERS=page-faults,allocations " + kPreloaded);
  CHECK(Number(leaves, "RangeFor/iterations:16", "page-faults") == 256);
  CHECK(Number(leaves, "RangeFor/iterations:16/threads:8", "page-faults") == 256);
  CHECK(Number(leaves, "KeepRunning/iterations:16", "page-faults") == 32);
  CHECK(Number(leaves, "KeepRunningBatch/iterations:16", "iterations") == 18);
  CHECK(Number(leaves, "KeepRunningBatch/iterations:16", "page-faults") == 32);
  CHECK(Number(leaves, "Paused/iterations:16", "page-faults") == 32);
  CHECK(Number(leaves, "BreaksOff/iterations:16", "page-faults") == -1);
  CHECK_THAT(leaves.at(PathOf(leaves, "RangeFor/iterations:16") + "/label"),
             Catch::Matchers::StartsWith("a label; allocations n/a ("));
  CHECK_THAT(leaves.at(PathOf(leaves, "KeepRunning/iterations:16") + "/label"),
             Catch::Matchers::StartsWith("allocations n/a ("));  // Not the label of the skipped one before it.
  CHECK(leaves.at("context/perfkit_pauses") == "excluded from all counts, as from the times");
}

TEST_CASE("an unchanged program keeps counters of its own that have the name of a column") {
  if (testing::kSanitized) SKIP_TEST(kLoadedFirst);
  const Leaves leaves = Json("PERFKIT_COUNTERS=page-faults " + kPreloaded + " --benchmark_filter=Counts");
  CHECK(Number(leaves, "Counts/iterations:16", "page-faults") == 1000);
  CHECK(Number(leaves, "Counts/iterations:16/threads:8", "page-faults") == 8000);
  for (const char* name : {"Counts/iterations:16", "Counts/iterations:16/threads:8"}) {
    CHECK_THAT(leaves.at(PathOf(leaves, name) + "/label"), Contains("n/a (the benchmark has a counter of this name)"));
  }
}

TEST_CASE("an unchanged program gets its allocations counted by a second library") {
  if (testing::kSanitized) SKIP_TEST(kLoadedFirst);
  const Leaves leaves =
      Json("LD_PRELOAD='" PERFKIT_PRELOAD " " PERFKIT_MALLOC_PRELOAD "' PERFKIT_COUNTERS=allocations " PERFKIT_PLAIN);
  CHECK(Number(leaves, "Allocates/iterations:16", "allocations") == 100);
  CHECK(Number(leaves, "Allocates/iterations:16/threads:8", "allocations") == 100);
  CHECK(Number(leaves, "Paused/iterations:16", "allocations") == 0);
}

TEST_CASE("repeated and aggregated reports of a preloaded program stay JSON") {
  if (testing::kSanitized) SKIP_TEST(kLoadedFirst);
  const Leaves leaves =
      Json("PERFKIT_COUNTERS=page-faults " + kPreloaded + " --benchmark_repetitions=3 --benchmark_filter=RangeFor");
  CHECK(Number(leaves, "RangeFor/iterations:16_mean", "page-faults") == 256);
  CHECK(Number(leaves, "RangeFor/iterations:16_stddev", "page-faults") == 0);
}

TEST_CASE("programs without the benchmark library do not notice the preload library") {
  if (testing::kSanitized) SKIP_TEST(kLoadedFirst);
  const Output output = Run("LD_PRELOAD=" PERFKIT_PRELOAD " /bin/echo fine 2>&1");
  CHECK(output.code == 0);
  CHECK(output.text == "fine\n");
}

TEST_CASE("benchmarks of a library that is loaded for itself run as without the preload library") {
  if (testing::kSanitized) SKIP_TEST(kLoadedFirst);
  const Output output = Run("LD_PRELOAD=" PERFKIT_PRELOAD " " PERFKIT_PLUGIN " --benchmark_filter=KeepRunning/ 2>&1");
  INFO(output.text);
  CHECK(output.code == 0);
  CHECK_THAT(output.text, Contains("KeepRunning/iterations:16"));
}

TEST_CASE("a benchmark that preloading cannot reach says so, and its wrappers do not") {
  if (testing::kSanitized) SKIP_TEST(kLoadedFirst);
  const std::string preload = "LD_PRELOAD=" PERFKIT_PRELOAD " ";
  const Output reached = Run(preload + "sh -c 'exec env A=1 nice " PERFKIT_STATIC " --benchmark_filter=x' 2>&1");
  CHECK(reached.text ==
        "perfkit: no counters: this program does not link Google Benchmark as a shared library\n"
        "benchmark [--benchmark_list_tests={true|false}]\n");
  CHECK(Run(preload + "/bin/echo --benchmark_filter=x 2>&1").text == "--benchmark_filter=x\n");
}

TEST_CASE("wrappers of a preloaded benchmark are silent") {
  if (testing::kSanitized) SKIP_TEST(kLoadedFirst);
  const Output output = Run("LD_PRELOAD=" PERFKIT_PRELOAD " sh -c 'env A=1 nice timeout 60 " PERFKIT_PLAIN
                            " --benchmark_filter=KeepRunning/ --benchmark_format=json' 2>&1 >/dev/null");
  CHECK(output.code == 0);
  CHECK(output.text.find("no counters") == output.text.npos);
}

TEST_CASE("a metric chooses a scale that no prefix hides") {
  const Leaves leaves = Json("PERFKIT_METRICS='faults_per_million = 1000000 * page-faults' " PERFKIT_COUNTED);
  CHECK(std::floor(Number(leaves, "Touch/iterations:16", "faults_per_million") / 1e6) == 256);
}

TEST_CASE("a State of unknown layout is not looked into") {
  for (const char* version : {"", "v1.8.4", "1.9.5", "v1.9.5-3-gabcdef", "v1.5.3"}) {
    CHECK(preload::WhyNotServed(version, true).empty());
  }
  for (const char* version :
       {"v2.0.0", "v1.10.0", "v0.0.0", "unknown", "v", "v1", "1..9", "\xff", "v99999999999999999999.1"}) {
    CHECK_THAT(preload::WhyNotServed(version, true), Contains(version) && Contains("1.9.5"));
  }
  CHECK_THAT(preload::WhyNotServed("", false), Contains("older"));
}

TEST_CASE("without preloading the same program has no counters") {
  const Leaves leaves = Json(PERFKIT_PLAIN);
  CHECK(Number(leaves, "RangeFor/iterations:16", "page-faults") == -1);
  CHECK(!leaves.contains("context/perfkit"));
}

}  // namespace
}  // namespace perfkit
