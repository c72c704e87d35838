// Tasks of unchanged programs: each is counted once, with what it cost, and what has no number is said.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "src/itt/library/settings.h"
#include "tests/itt/static_part.h"
#include "tests/itt/table.h"
#include "tests/support/temp_folder.h"

namespace perfkit::itt {
namespace {

using testing::TempFolder;

// A program that has ended under the collector.
struct Ended {
  int status = -1;     // As wait(2) says it.
  std::string output;  // Its own, with the table if that went to stderr.
  Table table{""};     // What is in the file of PERFKIT_ITT.
};

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Ended RunUnder(const std::string& variables, const std::string& program, const std::string& path) {
  const std::string command =
      absl::StrFormat("INTEL_LIBITTNOTIFY64=%s %s %s 2>&1", PERFKIT_ITT_COLLECTOR, variables, program);
  Ended ended;
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ended;
  char buffer[4096];
  for (size_t size; (size = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) ended.output.append(buffer, size);
  ended.status = pclose(pipe);
  ended.table = Table(path.empty() ? ended.output : TextOf(path));
  return ended;
}

// Runs the annotated program, with its table in a file.
Ended Run(const std::string& what) {
  const TempFolder folder;
  const std::string path = folder.path() + "/tasks.txt";
  return RunUnder("PERFKIT_ITT=" + path, absl::StrFormat("%s '%s'", PERFKIT_ANNOTATED, what), path);
}

TEST_CASE("itt: a program counts nothing if it is told so, and only then", "[itt]") {
  for (const char* const value : {"0", "", "no", "OFF", "1", "yes", "only"}) {
    const TempFolder folder;
    const std::string path = folder.path() + "/tasks.txt";
    const Ended ended = RunUnder(absl::StrFormat("PERFKIT_ITT_FORWARD_ONLY='%s' PERFKIT_ITT=%s", value, path),
                                 absl::StrFormat("%s plant", PERFKIT_ANNOTATED), path);
    CAPTURE(value, ended.output);
    CHECK(ended.status == 0);
    const std::string word = value;
    CHECK(TextOf(path).empty() == (word == "1" || word == "yes" || word == "only"));
  }
}

TEST_CASE("itt: each task is counted once, with the page faults that were planted in it", "[itt][law]") {
  const Ended ended = Run("plant");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK(ended.output.empty());
  CHECK(ended.table.Calls("app: work") == 100);
  CHECK(ended.table.Calls("app: inner") == 200);
  CHECK(ended.table.Calls("app: warm-up") == 6);  // 3, with one in each
  CHECK(ended.table.Calls("app: (frame)") == 3);
  CHECK(ended.table.Sum("page-faults", "app: work", 2) == 1100);
  CHECK(ended.table.Sum("page-faults", "app: work", 3) == 500);
  CHECK(ended.table.Sum("page-faults", "app: inner", 2) == 600);
}

TEST_CASE("itt: threads keep their numbers when they end, also inside of a task", "[itt][law]") {
  const Ended ended = Run("threads");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK(ended.table.Calls("app: work") == 400);
  CHECK(ended.table.Calls("app: inner") == 800);
  CHECK(ended.table.Sum("page-faults", "app: work", 3) == 2000);
  CHECK(ended.table.Sum("page-faults", "app: inner", 2) == 2400);
  CHECK_THAT(ended.table.text(), Catch::Contains("worker 0 (2 threads)") && Catch::Contains("worker 1 (2 threads)"));
  CHECK(ended.table.Number("tasks open at the end of their threads") == 1);
}

TEST_CASE("itt: ends that belong to nothing are counted, and end nothing else", "[itt]") {
  const Ended ended = Run("misuse");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK(ended.table.Calls("app: work") == 2);
  CHECK(ended.table.Calls("app: inner") == 1);
  CHECK(ended.table.Calls("library: inner") == 1);
  CHECK(ended.table.Calls("app: (frame)") == 1);
  CHECK(ended.table.Number("tasks ended by the end of a task or frame around them") == 2);
  CHECK(ended.table.Number("ends without a begin on the same thread") == 3);
}

TEST_CASE("itt: frames are zones around their tasks; submitted ones have times alone", "[itt]") {
  const Ended ended = Run("frames");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK(ended.table.Calls("app: (frame)") == 10);
  CHECK(ended.table.Calls("app: work") == 30);
  CHECK(ended.table.Sum("times alone, ms", "app: (frame)", 1) == 2);
  CHECK(ended.table.Sum("times alone, ms", "app: (frame)", 2) == 6);
  CHECK(ended.table.Number("submitted frames without valid times") == 2);
}

TEST_CASE("itt: overlapped tasks may end on any thread", "[itt]") {
  const Ended ended = Run("overlapped");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK(ended.table.Sum("times alone, ms", "app: work", 1) == 3);
  CHECK(ended.table.Number("overlapped tasks and regions without an end") == 1);
  CHECK(ended.table.Number("ends of overlapped tasks and regions without a begin") == 1);
}

TEST_CASE("itt: what begins in a pause is not counted, and said", "[itt]") {
  const Ended ended = Run("pause");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK(ended.table.Calls("app: work") == 16);
  CHECK(ended.table.Calls("app: inner") == -1);
  CHECK_THAT(ended.table.text(), Catch::Contains("main (1 thread)") && !Catch::Contains("workers"));
  CHECK(ended.table.Number("tasks begun while collection was paused") == 8);
}

TEST_CASE("itt: a forked child counts nothing, and leaves its parent's table alone", "[itt]") {
  const Ended ended = Run("fork");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK(ended.table.Calls("app: work") == 6);
}

TEST_CASE("itt: each task is counted while threads create names and the process forks", "[itt][law]") {
  const Ended ended = Run("storm");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  for (int name = 0; name < 100; ++name) CHECK(ended.table.Calls(absl::StrFormat("storm: name %d", name)) == 80);
}

TEST_CASE("itt: the exit from inside of a task leaves a table", "[itt]") {
  const Ended inside = Run("exit inside");
  INFO(inside.output << inside.table.text());
  CHECK(inside.status == 0);
  CHECK(inside.table.Calls("app: work") == 3);
  CHECK(inside.table.Number("tasks open at the end of their threads") == 1);
}

TEST_CASE("itt: the exit from another thread leaves a table, which tells of the thread inside", "[itt]") {
  const Ended elsewhere = Run("exit elsewhere");
  INFO(elsewhere.output << elsewhere.table.text());
  CHECK(elsewhere.status == 0);
  CHECK(elsewhere.table.Calls("app: work") == 20);
  CHECK(elsewhere.table.Number("threads inside of a task at the exit") == 1);
}

TEST_CASE("itt: tasks of static objects are not counted, and said", "[itt]") {
  const Ended ended = Run("late");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK(ended.table.Calls("app: work") == 3);
  CHECK(ended.table.Number("tasks on threads that were ending") == 2);
  CHECK(ended.table.Number("ends without a begin on the same thread") == 0);
}

TEST_CASE("itt: tasks of functions have the names of the functions", "[itt]") {
  const Ended ended = Run("functions");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK_THAT(ended.table.text(), Catch::Contains("app: annotated+0x"));
}

TEST_CASE("itt: tasks that are too deep are in those around them", "[itt][law]") {
  const Ended ended = Run("deep");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK(ended.table.Calls("app: work") == 65);
  CHECK(ended.table.Number("tasks inside of 64 others") == 36);
}

TEST_CASE("itt: names beyond the limit are in what is around them", "[itt][law]") {
  const Ended ended = Run("names");
  INFO(ended.output << ended.table.text());
  CHECK(ended.status == 0);
  CHECK(ended.table.Calls("app: name 500") == 1);
  CHECK(ended.table.Number("tasks beyond 512 paths of one thread") == 3000 - 512);
}

TEST_CASE("itt: tasks of signal handlers add up with those that they interrupt", "[itt][law]") {
  const Ended ended = Run("signals");
  INFO(ended.output << ended.table.text());
  REQUIRE(ended.status == 0);
  unsigned long work = 0, inner = 0;
  REQUIRE(std::sscanf(ended.output.c_str(), "%lu %lu", &work, &inner) == 2);
  CHECK(ended.table.Calls("app: work") == static_cast<double>(work));
  CHECK(ended.table.Calls("app: inner") + ended.table.Number("tasks of signal handlers") == static_cast<double>(inner));
}

#ifdef PERFKIT_FLOW
// Runs a program with a flow graph, whose work is in the zones `zone`. Returns its table, and the number of its bodies.
std::pair<Table, unsigned long> RunFlow(const std::string& program, const std::string& zone) {
  const TempFolder folder;
  const std::string path = folder.path() + "/tasks.txt";
  const Ended ended = RunUnder("PERFKIT_ITT=" + path, program, path);
  INFO(ended.output << ended.table.text());
  REQUIRE(ended.status == 0);
  unsigned long bodies = 0, pages = 0, faults = 0;
  REQUIRE(std::sscanf(ended.output.c_str(), "%lu %lu %lu", &bodies, &pages, &faults) == 3);
  // Code faults, too, when it first runs: not more than the whole process.
  const double counted = ended.table.Sum("page-faults", zone, 2);
  CHECK(counted >= static_cast<double>(pages));
  CHECK(counted <= static_cast<double>(faults));
  CHECK(ended.table.Calls("tbb: tbb_parallel_for") >= 1);
  return {ended.table, bodies};
}

TEST_CASE("itt: TBB's algorithms and graphs are zones, in an unchanged program", "[itt][law]") {
  const Table table = RunFlow(PERFKIT_FLOW_PLAIN, "tbb: tbb_flow_graph").first;
  CHECK(table.Calls("tbb.flow: body") == -1);
}

TEST_CASE("itt: the bodies of TBB's flow graphs are zones if its headers' annotations are on", "[itt][law]") {
  const auto [table, bodies] = RunFlow(PERFKIT_FLOW, "tbb.flow: body");
  CHECK(table.Calls("tbb.flow: body") == static_cast<double>(bodies));
}
#endif

TEST_CASE("itt: without a file the table goes to stderr; a file that cannot be written is an error there", "[itt]") {
  const Ended to_stderr = RunUnder("", PERFKIT_ANNOTATED " plant", "");
  CHECK(to_stderr.status == 0);
  CHECK(to_stderr.table.Calls("app: work") == 100);
  const TempFolder folder;
  const std::string path = folder.path() + "/absent/tasks.txt";
  const Ended nowhere = RunUnder("PERFKIT_ITT=" + path, PERFKIT_ANNOTATED " plant", "");
  CHECK(nowhere.status == 0);
  CHECK_THAT(nowhere.output, Catch::Contains(path));
}

TEST_CASE("itt: a relative path is that of the start, in whichever folder the program ends", "[itt]") {
  const TempFolder folder;
  const std::string variables = absl::StrFormat("PERFKIT_ITT=tasks.txt env -C %s", folder.path());
  const Ended ended = RunUnder(variables, PERFKIT_ANNOTATED " chdir", folder.path() + "/tasks.txt");
  INFO(ended.output);
  CHECK(ended.status == 0);
  CHECK(ended.output.empty());
  CHECK(ended.table.Calls("app: work") == 3);
}

TEST_CASE("itt: events are chosen by name, and one that there is not has a reason", "[itt]") {
  const Ended ended = RunUnder("PERFKIT_ITT_COUNTERS=page-faults,no-such-event", PERFKIT_ANNOTATED " plant", "");
  INFO(ended.output);
  CHECK(ended.status == 0);
  CHECK(ended.table.Sum("page-faults", "app: work", 2) == 1100);
  CHECK_THAT(ended.output, Catch::Contains("not counted: no-such-event") && !Catch::Contains("task-clock"));
  const Ended wrong = RunUnder("PERFKIT_ITT_COUNTERS='{page-faults'", PERFKIT_ANNOTATED " plant", "");
  INFO(wrong.output);
  CHECK(wrong.status == 0);
  CHECK_THAT(wrong.output, Catch::Contains("PERFKIT_ITT_COUNTERS is \"{page-faults\""));
}

absl::StatusOr<Settings> Read(const std::map<std::string, std::string>& variables) {
  return ReadSettings(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found != variables.end() ? found->second.c_str() : nullptr;
      },
      42);
}

TEST_CASE("itt: the environment says where the table goes", "[itt]") {
  CHECK(Read({})->path.empty());
  CHECK(Read({})->events.size() == 4);
  CHECK(Read({{"PERFKIT_ITT", "a-%p.txt"}})->path == "a-42.txt");
  CHECK(Read({{"PERFKIT_ITT_COUNTERS", "page-faults,{cycles,instructions}"}})->events.size() == 2);
  CHECK(Read({{"PERFKIT_ITT_COUNTERS", "{cycles"}}).status().code() == absl::StatusCode::kInvalidArgument);
}

// Loads the collector into this process, which then leaves its own table nowhere.
std::string LoadInto(StaticPart& part, int groups = -1) {
  setenv("PERFKIT_ITT", "/dev/null", 1);
  return part.Load(PERFKIT_ITT_COLLECTOR, groups);
}

// Functions of a foreign static part that the collector must not touch.
void StayAsTheyAre(StaticPart& part) {
  const auto before = part.calls.domain_create;
  CHECK(LoadInto(part).empty());
  CHECK(part.calls.task_begin == nullptr);
  CHECK(part.calls.domain_create == before);
}

TEST_CASE("itt: a static part with another layout is left alone", "[itt]") {
  SECTION("of an unknown kind") {
    StaticPart part;
    part.global.magic[3] ^= 1;
    StayAsTheyAre(part);
  }
  SECTION("of another major version") {
    StaticPart part;
    part.global.version_major = 2;
    StayAsTheyAre(part);
  }
  SECTION("with the entries of 2010") {
    StaticPart part;
    part.global.version_build = kBuildOfShortEntries;
    StayAsTheyAre(part);
  }
  SECTION("with a list that is none") {
    StaticPart part;
    part.entries[5].name = "something else";
    StayAsTheyAre(part);
  }
  SECTION("without a list") {
    StaticPart part;
    part.global.entries = nullptr;
    StayAsTheyAre(part);
  }
}

TEST_CASE("itt: only the groups that are asked for are connected", "[itt]") {
  StaticPart part;
  CHECK(LoadInto(part, 1 << 3).empty());
  CHECK(part.calls.task_begin == nullptr);
}

TEST_CASE("itt: a name is one domain and one handle, also if the static part has made it", "[itt]") {
  StaticPart part;
  Domain early{.flags = 1, .name = "made early"};
  part.global.domains = &early;
  REQUIRE(LoadInto(part).empty());
  REQUIRE(part.calls.domain_create != nullptr);
  CHECK(part.calls.domain_create("made early") == &early);
  Domain* const late = part.calls.domain_create("made late");
  REQUIRE(late != nullptr);
  CHECK(late->flags != 0);
  CHECK(std::string(late->name) == "made late");
  CHECK(part.calls.domain_create("made late") == late);
  CHECK(part.calls.domain_create(nullptr) == nullptr);
}

}  // namespace
}  // namespace perfkit::itt
