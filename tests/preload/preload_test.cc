// Profiles of whole programs: whatever a program does, it does it as if nothing were there, and its profile is written.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include "absl/strings/str_format.h"
#include "src/preload/settings.h"
#include "tests/support/temp_folder.h"

namespace perfkit::preload {
namespace {

using testing::TempFolder;

std::string TextOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Runs a program under the library; how it ended, as wait(2) says it. `end` is the end of the shell's command.
int RunProgram(const std::string& path, const std::string& program, const std::string& variables,
               const std::string& end = "2>/dev/null") {
  return std::system(
      absl::StrFormat("PERFKIT_PROFILE='%s' %s LD_PRELOAD=%s %s %s", path, variables, PERFKIT_PRELOAD, program, end)
          .c_str());
}

// The same of spin.
int Run(const std::string& path, const std::string& arguments, const std::string& variables = {}) {
  return RunProgram(path, absl::StrFormat("%s %s", PERFKIT_SPIN, arguments), variables);
}

size_t FilesIn(const TempFolder& folder) {
  return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder.path()), {}));
}

TEST_CASE("a program is profiled from its start to its exit", "[preload]") {
  const TempFolder folder;
  for (const std::string stacks : {"dumps", "live", "frame-pointers", "none"}) {
    const std::string path = folder.path() + "/" + stacks + ".folded";
    CHECK(Run(path, "100", "PERFKIT_PROFILE_STACKS=" + stacks) == 0);
    CHECK_THAT(TextOf(path), Catch::Contains("SpinHere"));
  }
}

TEST_CASE("a program whose first thread leaves before the others ends with the last of them", "[preload]") {
  const std::string clock = GENERATE("wall", "cpu");
  const TempFolder folder;
  const std::string path = folder.path() + "/one.folded";
  CHECK(Run(path, "100 pthread_exit", "PERFKIT_PROFILE_CLOCK=" + clock) == 0);
  CHECK_THAT(TextOf(path), Catch::Contains("SpinHere"));
}

TEST_CASE("programs that a program starts leave its profile alone, unless each has a file of its own", "[preload]") {
  const TempFolder folder;
  CHECK(Run(folder.path() + "/one.folded", "100 child") == 0);
  CHECK(FilesIn(folder) == 1);
  CHECK(Run(folder.path() + "/%p.folded", "100 child") == 0);
  CHECK(FilesIn(folder) >= 3);  // the shell's, the program's, its child's
}

TEST_CASE("a program that replaces itself is profiled as what it has become", "[preload]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/one.folded";
  CHECK(Run(path, "10 exec") == 0);
  CHECK_THAT(TextOf(path), Catch::Contains("SpinHere"));
}

TEST_CASE("a program that resets SIGTRAP lives", "[preload]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/one.folded";
  CHECK(Run(path, "100 trap") == 0);
  CHECK_THAT(TextOf(path), Catch::Contains("SpinHere"));
}

TEST_CASE("a crash leaves the profile that was written last", "[preload]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/one.folded";
  const int end = Run(path, "2500 crash", "PERFKIT_PROFILE_EVERY=1");
  CHECK(end != 0);
  CHECK_THAT(TextOf(path), Catch::Contains("SpinHere"));
}

TEST_CASE("a program that closes all descriptors keeps the files that it opens then", "[preload]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/one.folded", said = folder.path() + "/said";
  folder.Write("/files/0", "");
  // It would not end if its end waited for the next writing.
  CHECK(RunProgram(path, absl::StrFormat("%s %s/files", PERFKIT_CLOSES_ALL, folder.path()),
                   "PERFKIT_PROFILE_EVERY=1000000", "2>" + said) == 0);
  std::set<std::string> texts;
  for (int i = 0; i < 200; ++i) texts.insert(TextOf(absl::StrFormat("%s/files/%d", folder.path(), i)));
  CHECK(texts == std::set<std::string>{"text"});
  CHECK_THAT(TextOf(said), Catch::Contains("closed perfkit's descriptors"));
}

TEST_CASE("a program that changes its folder does not move its profile", "[preload]") {
  const std::string arguments = GENERATE("100 chdir", "10 chdir-exec");
  const TempFolder folder;
  folder.Write("/elsewhere/file", "");
  const std::string before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  CHECK(Run("one.folded", arguments) == 0);
  std::filesystem::current_path(before);
  CHECK_THAT(TextOf(folder.path() + "/one.folded"), Catch::Contains("SpinHere"));
}

// Runs spin; returns what is said on stderr.
std::string SaidBy(const std::string& path, const std::string& arguments) {
  const TempFolder folder;
  const std::string said = folder.path() + "/said";
  CHECK(RunProgram(path, absl::StrFormat("%s %s", PERFKIT_SPIN, arguments), "PERFKIT_PROFILE_EVERY=1", "2>" + said) ==
        0);
  return TextOf(said);
}

TEST_CASE("a program that does not call exit is told why it has no profile", "[preload]") {
  const TempFolder folder;
  CHECK_THAT(SaidBy(folder.path() + "/one.unknown", "10 quit"), Catch::Contains("no format has that extension"));
  CHECK_THAT(SaidBy(folder.path() + "/missing/one.folded", "10 told"), Catch::Contains("/missing/one.folded"));
}

TEST_CASE("a forked child has no descriptors of perfkit", "[preload]") {
  const TempFolder folder;
  CHECK(Run(folder.path() + "/one.folded", "10 fork") == 0);
}

absl::StatusOr<Settings> Read(const std::map<std::string, std::string>& variables) {
  return ReadSettings(
      [&](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found != variables.end() ? found->second.c_str() : nullptr;
      },
      42);
}

TEST_CASE("the environment says what is profiled", "[preload]") {
  CHECK(Read({})->path.empty());
  CHECK(Read({{"PERFKIT_PROFILE", "a.html"}})->path == "a.html");
  CHECK(Read({{"PERFKIT_PROFILE", "a-%p.html"}})->path == "a-42.html");
  CHECK(Read({{"PERFKIT_PROFILE", "a-%p.html"}})->each_process);
  CHECK(Read({{"PERFKIT_PROFILE", "23:59:00.html"}})->path == "23:59:00.html");
  for (const std::string path : {"/a.html", "/23:59:00.html", "/a:/b.html"}) {
    const Settings settings = *Read({{"PERFKIT_PROFILE", path}});
    CHECK(settings.path == path);
    CHECK(Read({{"PERFKIT_PROFILE", ClaimedBy(settings, 42)}})->path == path);
    CHECK(Read({{"PERFKIT_PROFILE", ClaimedBy(settings, 41)}})->path.empty());
  }
  CHECK(Read({{"PERFKIT_PROFILE", "a.html"}, {"PERFKIT_PROFILE_CLOCK", "cpu"}})->session.clock == SessionClock::kCpu);
  for (const char* name :
       {"PERFKIT_PROFILE_INTERVAL", "PERFKIT_PROFILE_CLOCK", "PERFKIT_PROFILE_EVERY", "PERFKIT_PROFILE_STACKS"}) {
    const absl::Status status = Read({{"PERFKIT_PROFILE", "a.html"}, {name, "-1"}}).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()), Catch::Contains(name) && Catch::Contains("\"-1\""));
  }
}

}  // namespace
}  // namespace perfkit::preload
