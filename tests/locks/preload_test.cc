// Unchanged programs under libperfkit_locks_preload.so behave as without it; beside libperfkit_profile_preload.so, their
// profiles name the locks.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"

namespace perfkit::sys::locks {
namespace {

// What a command prints on both streams, and how it ends.
struct Outcome {
  std::string text;
  int status = -1;

  bool operator==(const Outcome&) const = default;
};

Outcome Run(const std::string& command) {
  Outcome outcome;
  FILE* const pipe = popen(("exec 2>&1; " + command).c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[4096];
  for (size_t size; (size = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.text.append(buffer, size);
  outcome.status = pclose(pipe);
  return outcome;
}

bool IsThere(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

void CheckSame(const std::string& command) {
  INFO(command);
  const Outcome bare = Run(command);
  const Outcome preloaded = Run("LD_PRELOAD=" PERFKIT_LOCKS_PRELOAD " " + command);
  CHECK(preloaded.text == bare.text);
  CHECK(preloaded.status == bare.status);
}

TEST_CASE("a program with all kinds of locks does the same", "[locks][preload]") {
  const Outcome outcome = Run(PERFKIT_CONTEND);
  CHECK(outcome.text == "80 80 80 80\n");
  CHECK(WEXITSTATUS(outcome.status) == 7);
  CheckSame(PERFKIT_CONTEND);
}

TEST_CASE("programs of the system do the same", "[locks][preload]") {
  bool any = false;
  const auto check = [&](const std::string& program, const std::string& arguments) {
    if (!IsThere(program)) return;
    any = true;
    CheckSame(program + " " + arguments);
  };
  check("python3",
        "-c 'import threading, queue\n"
        "q = queue.Queue()\n"
        "def work():\n"
        "  for i in range(2000): q.put(i)\n"
        "threads = [threading.Thread(target=work) for _ in range(8)]\n"
        "for t in threads: t.start()\n"
        "print(sum(q.get(timeout=60) for _ in range(16000)))\n"
        "for t in threads: t.join()\n"
        "c = threading.Condition()\n"
        "with c: print(c.wait(0.01))\n"
        "raise SystemExit(5)'");
  check("sqlite3", ":memory: 'create table t(a); with recursive n(i) as (select 1 union all select i+1 from n where "
                   "i<20000) insert into t select i from n; select sum(a), count(*) from t; select nonsense;'");
  check("cmake", "-E capabilities");
  check("xz", "--version");
  if (!any) SKIP_TEST("no program of the list is installed");
}

TEST_CASE("a profile of an unchanged program names its locks", "[locks][preload]") {
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/out.txt";
  const Outcome outcome = Run("PERFKIT_PROFILE='" + path + "' LD_PRELOAD='" PERFKIT_LOCKS_PRELOAD
                              " " PERFKIT_PROFILE_PRELOAD "' " PERFKIT_CONTEND);
  INFO(outcome.text);
  CHECK(WEXITSTATUS(outcome.status) == 7);
  std::ifstream file(path);
  const std::string report{std::istreambuf_iterator<char>(file), {}};
  CHECK_THAT(report, Catch::Contains("condition 0x"));
  CHECK_THAT(report, Catch::Contains("reader-writer lock 0x"));
}

}  // namespace
}  // namespace perfkit::sys::locks
