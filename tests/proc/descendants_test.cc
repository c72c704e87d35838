// Descendants of processes: by the files of this machine, and by written ones.
#include "src/proc/descendants.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "src/proc/stat.h"
#include "tests/support/temp_folder.h"

namespace perfkit::proc {
namespace {

// The line of a process whose fields are their own numbers, but for the parent.
std::string StatLine(int pid, const char* name, int parent) {
  std::string line = absl::StrFormat("%d (%s) S %d", pid, name, parent);
  for (int field = 5; field <= 52; ++field) line += absl::StrFormat(" %d", field);
  return line + "\n";
}

TEST_CASE("the parent of a process is found after its name, whatever that is", "[stat]") {
  for (const char* const name : {"a", "a b", "a) S 9 (b", ")", ""}) {
    const std::optional<Stat> stat = ParseStat(StatLine(7, name, 3));
    REQUIRE(stat.has_value());
    CHECK(stat->parent == 3);
    CHECK(stat->image == "26 27 28 45 46 47 48 49 50 51 ");
    CHECK_FALSE(stat->is_of_kernel);
  }
  std::string of_kernel = StatLine(7, "kworker/0:1", 2);
  of_kernel.replace(of_kernel.find(" 9 "), 3, " 69238880 ");  // 0x4208060, as Linux 6.1 writes it
  REQUIRE(ParseStat(of_kernel).has_value());
  CHECK(ParseStat(of_kernel)->is_of_kernel);
  CHECK_FALSE(ParseStat("").has_value());
  CHECK_FALSE(ParseStat("7 (a) S 3 5 6").has_value());
  CHECK_FALSE(ParseStat("7 a S 3").has_value());
}

TEST_CASE("a forked child has the image of its parent until it calls exec", "[stat][law]") {
  int lines[2] = {-1, -1};
  REQUIRE(pipe(lines) == 0);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char byte = 0;
    (void)!read(lines[0], &byte, 1);
    execl("/bin/sleep", "sleep", "1000", nullptr);
    _exit(1);
  }
  const std::optional<Stat> ours = ReadStat(getpid()), before = ReadStat(child);
  REQUIRE((ours.has_value() && before.has_value()));
  CHECK(before->parent == getpid());
  CHECK(before->image == ours->image);
  (void)!write(lines[1], "e", 1);
  std::optional<Stat> after = before;
  while (after.has_value() && after->image == before->image) after = ReadStat(child);
  CHECK(after.has_value());
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int fd : lines) close(fd);
}

TEST_CASE("descendants come after their parents, and each once", "[descendants]") {
  const testing::TempFolder folder;
  const auto add = [&](int pid, int parent) {
    const std::string path = absl::StrFormat("%s/%d", folder.path(), pid);
    std::filesystem::create_directory(path);
    std::ofstream(path + "/stat") << StatLine(pid, "x", parent);
  };
  for (const auto& [pid, parent] : {std::pair{10, 1}, {11, 1}, {5, 20}, {20, 10}, {21, 10}, {30, 11}}) add(pid, parent);
  CHECK(ListDescendants(10, folder.path()) == std::vector<pid_t>{20, 21, 5});
  CHECK(ListDescendants(11, folder.path()) == std::vector<pid_t>{30});
  CHECK(ListDescendants(30, folder.path()).empty());
  add(40, 41);
  add(41, 40);
  CHECK(ListDescendants(40, folder.path()) == std::vector<pid_t>{41, 40});  // Read while numbers were used again.
  CHECK(ListDescendants(1, folder.path() + "/none").empty());
}

}  // namespace
}  // namespace perfkit::proc
