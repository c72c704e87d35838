// ITT tasks in a program's own FrameCounter, by libperfkit_itt.so; and each reason why there can be none.
#include "perfkit/itt.h"

#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_format.h"
#include "tests/support/temp_folder.h"

namespace perfkit::itt {
namespace {

using testing::TempFolder;

struct Ended {
  int status = -1;     // As wait(2) says it.
  std::string output;  // With what goes to stderr.
};

// Runs a command of the shell without variables of ITT in its environment.
Ended Run(const std::string& command) {
  Ended ended;
  FILE* const pipe = popen(absl::StrFormat("unset INTEL_LIBITTNOTIFY64 PERFKIT_ITT; { %s; } 2>&1", command).c_str(), "r");
  if (pipe == nullptr) return ended;
  char buffer[4096];
  for (size_t size; (size = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) ended.output.append(buffer, size);
  ended.status = pclose(pipe);
  return ended;
}

Ended RunCounted(const std::string& variables, const std::string& arguments) {
  return Run(absl::StrFormat("%s %s %s", variables, PERFKIT_COUNTED, arguments));
}

const std::string kSet = "INTEL_LIBITTNOTIFY64=" PERFKIT_ITT_COLLECTOR;

// Returns the output, without TBB's copy of ittnotify, if the program links TBB: that of Debian 13 connects it when it is
// loaded, that of Debian 12 when it is used. `own` is the number of the program's.
std::string WithoutTbb(const Ended& ended, [[maybe_unused]] int own) {
  [[maybe_unused]] const auto text = [](int copies) { return absl::StrFormat("zones 10 copies %d\n", copies); };
#ifdef PERFKIT_WITH_TBB
  if (ended.output == text(own + 1)) return text(own);
#endif
  return ended.output;
}

TEST_CASE("itt collection: each task is a zone of the program's, and there is no table", "[itt][law]") {
  const std::string expected = "zones 10 copies 2\n";
  CHECK(RunCounted("", "work " PERFKIT_ITT_COLLECTOR).output == expected);
  CHECK(WithoutTbb(RunCounted(kSet, "work"), 2) == expected);
  CHECK(WithoutTbb(RunCounted(kSet, "work " PERFKIT_ITT_COLLECTOR), 2) == expected);
}

TEST_CASE("itt collection: without a path the dynamic linker finds the collector", "[itt]") {
  const std::string path = PERFKIT_ITT_COLLECTOR;
  const Ended ended = RunCounted("LD_LIBRARY_PATH=" + path.substr(0, path.rfind('/')), "work");
  CHECK(ended.output == "zones 10 copies 2\n");
}

TEST_CASE("itt collection: a copy of ittnotify that came first is taken over, and its table is none", "[itt][law]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/table.txt";
  CHECK(WithoutTbb(RunCounted(kSet + " PERFKIT_ITT=" + path, "'taken over'"), 1) == "zones 10 copies 1\n");
  CHECK_FALSE(std::ifstream(path).good());
}

TEST_CASE("itt collection: a copy that came first without a collector is not connected, and not counted", "[itt]") {
  CHECK(RunCounted("", "'taken over' " PERFKIT_ITT_COLLECTOR).output == "zones 0 copies 0\n");
}

TEST_CASE("itt collection: a copy with another layout is left alone, and counted", "[itt]") {
  CHECK(RunCounted("", "unknown " PERFKIT_ITT_COLLECTOR).output == "copies 0 unknown 1\n");
}

TEST_CASE("itt collection: what belongs to no thread has times", "[itt]") {
  const Ended ended = RunCounted("", "times " PERFKIT_ITT_COLLECTOR);
  INFO(ended.output);
  CHECK_THAT(ended.output, Catch::StartsWith("app: (frame): 2, max 4000\napp: work: 1, max ") &&
                               Catch::EndsWith("\nopen 1 stray 1\n"));
}

TEST_CASE("itt collection: programs that the program starts have no table, unless theirs was asked for", "[itt]") {
  const std::string annotated = " '" PERFKIT_ANNOTATED " plant'";
  const Ended none = RunCounted("", "starts " PERFKIT_ITT_COLLECTOR + annotated);
  CHECK(none.status == 0);
  CHECK(none.output.empty());
  const Ended asked = RunCounted(kSet, "starts " PERFKIT_ITT_COLLECTOR + annotated);
  CHECK(asked.status == 0);
  CHECK_THAT(asked.output, Catch::Contains("app: work"));
}

TEST_CASE("itt collection: a relative path is found after a change of the folder", "[itt]") {
  const std::string path = PERFKIT_ITT_COLLECTOR;
  const size_t slash = path.rfind('/');
  const Ended ended = Run(absl::StrFormat("cd '%s' && %s starts ./%s 'test \"$INTEL_LIBITTNOTIFY64\" -ef %s'",
                                          path.substr(0, slash), PERFKIT_COUNTED, path.substr(slash + 1), path));
  INFO(ended.output);
  CHECK(ended.status == 0);
}

// The error of Start, which names what was asked for and a remedy.
std::string Refusal(const std::string& variables, const std::string& arguments, const std::string& code) {
  const Ended ended = RunCounted(variables, arguments);
  CHECK(ended.status == 0);
  CHECK_THAT(ended.output, Catch::StartsWith(code + ": ITT tasks ") && Catch::Contains(". Remedy: "));
  return ended.output;
}

TEST_CASE("itt collection: each reason for none is an error", "[itt]") {
  const std::string not_there = Refusal("", "work /nonexistent/it.so", "NOT_FOUND");
  CHECK_THAT(not_there, Catch::Contains("/nonexistent/it.so: it cannot be loaded: ") &&
                            Catch::Contains("No such file or directory"));
  CHECK_THAT(Refusal("INTEL_LIBITTNOTIFY64=/nonexistent/it.so", "work", "NOT_FOUND"),
             Catch::Contains("/nonexistent/it.so (of INTEL_LIBITTNOTIFY64): it cannot be loaded: "));
  CHECK_THAT(Refusal("LD_LIBRARY_PATH=", "work", "NOT_FOUND"), Catch::Contains(" libperfkit_itt.so: it cannot be loaded"));
  CHECK_THAT(Refusal("", "work /etc/passwd", "NOT_FOUND"), Catch::Contains("invalid ELF header"));

  const std::string kForeign = "it has no function perfkit_itt_forward";
  CHECK_THAT(Refusal("", "work libm.so.6", "FAILED_PRECONDITION"), Catch::Contains(kForeign));
  CHECK_THAT(Refusal("", "work " PERFKIT_OTHER_COLLECTOR, "FAILED_PRECONDITION"), Catch::Contains(kForeign));
  CHECK_THAT(Refusal("INTEL_LIBITTNOTIFY64=" PERFKIT_OTHER_COLLECTOR, "work", "FAILED_PRECONDITION"),
             Catch::Contains(kForeign));
  CHECK_THAT(Refusal("", "work " PERFKIT_FUTURE_COLLECTOR, "FAILED_PRECONDITION"),
             Catch::Contains("it understands version 7 of the interface, and this program's perfkit has version 1"));
  CHECK_THAT(Refusal("INTEL_LIBITTNOTIFY64=" PERFKIT_OTHER_COLLECTOR, "work " PERFKIT_ITT_COLLECTOR,
                     "FAILED_PRECONDITION"),
             Catch::Contains("INTEL_LIBITTNOTIFY64 names another collector, " PERFKIT_OTHER_COLLECTOR));
  CHECK_THAT(Refusal("", "another " PERFKIT_ITT_COLLECTOR, "FAILED_PRECONDITION"),
             Catch::Contains("there is an IttCollection already"));
}

#ifdef PERFKIT_WITH_TBB
TEST_CASE("itt collection: TBB's bodies are zones inside of the program's", "[itt][law]") {
  const Ended ended = RunCounted("", "graph " PERFKIT_ITT_COLLECTOR);
  INFO(ended.output);
  REQUIRE(ended.status == 0);
  unsigned long bodies = 0, zones = 0, pages = 0, process_faults = 0, zone_faults = 0, unended = 0, loops = 0;
  REQUIRE(std::sscanf(ended.output.c_str(), "%lu %lu %lu %lu %lu %lu %lu", &bodies, &zones, &pages, &process_faults,
                      &zone_faults, &unended, &loops) == 7);
  CHECK(loops >= 1);
  CHECK(zones <= bodies);
  CHECK(zone_faults <= process_faults);
  if (unended > 0) return;  // The table lacks what a worker counted that was kept from leaving its task for 100 ms.
  CHECK(zones == bodies);
  CHECK(zone_faults >= pages);
}
#endif

}  // namespace
}  // namespace perfkit::itt
