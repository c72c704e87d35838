// Lists of code that was made at run time: their lines, their growth, and files that must not be believed.
#include "src/proc/jit_map.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_format.h"
#include "src/proc/stat.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/support/work.h"

namespace perfkit::proc {
namespace {

using testing::TempFolder;

constexpr pid_t kPid = 4711;
constexpr char kList[] =
    "/4711/root"
    "/tmp/perf-4711.map";

// A folder as /proc, with a process of this test's user.
TempFolder& AddStatus(TempFolder& proc) {
  proc.Write("/4711/status", absl::StrFormat("Name:\tnode\nUid:\t%d\t%d\t%d\t%d\nNSpid:\t4711\n", geteuid(), geteuid(),
                                             geteuid(), geteuid()));
  return proc;
}

void Append(const TempFolder& proc, const std::string& text) {
  std::ofstream(proc.path() + kList, std::ios::app) << text;
}

std::string NameAt(JitMap& map, uint64_t pc) {
  const std::optional<JitFunction> found = map.Find(pc);
  return found ? std::string(found->name) : "";
}

TEST_CASE("a line is an address, a size and a name with all its blanks", "[jit_map]") {
  const std::optional<JitFunction> found = ParseJitLine("7f0012 1c LazyCompile:~add /app/x.js:3");
  REQUIRE(found);
  CHECK(found->begin == 0x7f0012);
  CHECK(found->end == 0x7f002e);
  CHECK(found->name == "LazyCompile:~add /app/x.js:3");
  CHECK(ParseJitLine("0x10 0x8 f")->end == 0x18);
  for (const char* line :
       {"", "10", "10 8", "10 8 ", "10 0 f", "zz 8 f", "10 zz f", "-1 8 f", "10 ffffffffffffffff f"}) {
    INFO(line);
    CHECK_FALSE(ParseJitLine(line));
  }
}

TEST_CASE("functions are known as the list grows, and only whole lines of it", "[jit_map]") {
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 10 first\n2000 10 sec");
  JitMap map(kPid, proc.path());
  CHECK(NameAt(map, 0x1000) == "first");
  CHECK(NameAt(map, 0x100f) == "first");
  CHECK(NameAt(map, 0x1010).empty());
  CHECK(NameAt(map, 0xfff).empty());
  CHECK(NameAt(map, 0x2000).empty());
  Append(proc, "ond\nnonsense\n3000 10 third\n");
  CHECK(NameAt(map, 0x2000) == "second");
  CHECK(NameAt(map, 0x3000) == "third");
  CHECK(map.functions() == 3);
  CHECK(map.status().ok());
}

TEST_CASE("what is made where other code was takes its place", "[jit_map]") {
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 100 old\n1040 20 inner\n2000 10 a\n2010 10 b\n1ff8 1c over\n");
  JitMap map(kPid, proc.path());
  CHECK(NameAt(map, 0x103f) == "old");
  CHECK(NameAt(map, 0x1040) == "inner");
  CHECK(NameAt(map, 0x1060) == "old");
  CHECK(NameAt(map, 0x2000) == "over");
  CHECK(NameAt(map, 0x2013) == "over");
  CHECK(NameAt(map, 0x2014) == "b");
}

TEST_CASE("an address that is used again has its new name at once", "[jit_map]") {
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 10 first\n");
  JitMap map(kPid, proc.path());
  CHECK(NameAt(map, 0x1008) == "first");
  Append(proc, "1000 10 second\n");
  CHECK(NameAt(map, 0x1008) == "second");
}

TEST_CASE("a forked process has its parent's functions, unless either has used their addresses again", "[jit_map]") {
  constexpr char kChildList[] =
      "/4712/root"
      "/tmp/perf-4712.map";
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 10 inherited\n2000 10 replaced\n3000 10 old\n4000 10 again\n4000 10 again\n");
  JitMap parent(kPid, proc.path());
  JitMap child(kPid + 1, proc.path(), &parent), grandchild(kPid + 2, proc.path(), &child);
  for (JitMap* const map : {&child, &grandchild}) {
    CHECK(NameAt(*map, 0x1000) == "inherited");
    CHECK(NameAt(*map, 0x4000) == "again");
    CHECK(map->status().ok());
  }
  proc.Write(kChildList, "2000 10 of_the_child\n");
  CHECK(NameAt(child, 0x2000) == "of_the_child");
  CHECK(NameAt(parent, 0x2000) == "replaced");
  CHECK(NameAt(grandchild, 0x2000).empty());  // It may have been forked before or after that.
  CHECK(absl::IsFailedPrecondition(grandchild.status()));
  Append(proc, "3000 10 new\n");
  CHECK(NameAt(parent, 0x3000) == "new");
  CHECK(NameAt(child, 0x3000).empty());
  CHECK(absl::IsFailedPrecondition(child.status()));
  CHECK(NameAt(child, 0x1000) == "inherited");
}

TEST_CASE("a list that was written anew is read from its beginning", "[jit_map]") {
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 10 first\n");
  JitMap map(kPid, proc.path());
  CHECK(NameAt(map, 0x1000) == "first");
  const std::string path = proc.path() + kList;
  proc.Write(std::string(kList) + ".new", "5000 10 other\n");
  std::filesystem::rename(path + ".new", path);
  CHECK(NameAt(map, 0x5000) == "other");
}

TEST_CASE("a list that was cut and written anew in the same file is read from its beginning", "[jit_map]") {
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 10 first\n2000 10 second\n");
  JitMap map(kPid, proc.path());
  CHECK(NameAt(map, 0x1000) == "first");
  std::ofstream(proc.path() + kList, std::ios::trunc) << "5000 10 other\n";
  CHECK(NameAt(map, 0x5000) == "other");
  Append(proc, "6000 10 next\n");
  CHECK(NameAt(map, 0x6000) == "next");
}

// Also one in a new file that has got the number of a deleted one.
TEST_CASE("a list that was written anew in the same file is read from its beginning, if it is longer",
          "[jit_map][law]") {
  for (const char* const anew : {"5000 10 other\n", "5000 10 other\n6000 10 more\n"}) {
    TempFolder proc;
    AddStatus(proc).Write(kList, "1000 10 first\n");
    JitMap map(kPid, proc.path());
    CHECK(NameAt(map, 0x1000) == "first");
    testing::Sleep(20'000'000);  // The kernel tells changes to some milliseconds.
    std::ofstream(proc.path() + kList, std::ios::trunc) << anew;
    CHECK(NameAt(map, 0x5000) == "other");
    Append(proc, "7000 10 next\n");
    CHECK(NameAt(map, 0x7000) == "next");
  }
}

TEST_CASE("a forked process whose list is another user's has no names of its parent's", "[jit_map]") {
  if (geteuid() != 0) SKIP_TEST("only root can give files away");
  constexpr char kChildList[] =
      "/4712/root"
      "/tmp/perf-4712.map";
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 10 of_the_parent\n");
  JitMap parent(kPid, proc.path()), child(kPid + 1, proc.path(), &parent), grandchild(kPid + 2, proc.path(), &child);
  CHECK(NameAt(child, 0x1000) == "of_the_parent");
  CHECK(NameAt(grandchild, 0x1000) == "of_the_parent");
  proc.Write(kChildList, "1000 10 planted\n");
  if (chown((proc.path() + kChildList).c_str(), 65534, 65534) != 0) SKIP_TEST("this user namespace has one user");
  CHECK(NameAt(child, 0x1000).empty());
  CHECK(NameAt(grandchild, 0x1000).empty());
  CHECK(child.status().message().find("owned by uid 65534") != std::string::npos);
  REQUIRE(chown((proc.path() + kChildList).c_str(), 0, 0) == 0);
  CHECK(NameAt(child, 0x1000) == "planted");
  CHECK(child.status().ok());
}

TEST_CASE("a link, a folder and another user's file are not believed", "[jit_map]") {
  TempFolder proc;
  AddStatus(proc).Write("/elsewhere", "1000 10 linked\n");
  std::filesystem::create_directories(proc.path() +
                                      "/4711/root"
                                      "/tmp");
  std::filesystem::create_symlink(proc.path() + "/elsewhere", proc.path() + kList);
  JitMap linked(kPid, proc.path());
  CHECK(NameAt(linked, 0x1000).empty());
  CHECK_FALSE(linked.status().ok());
  std::filesystem::remove(proc.path() + kList);
  std::filesystem::create_directory(proc.path() + kList);
  JitMap folder(kPid, proc.path());
  CHECK(NameAt(folder, 0x1000).empty());
  std::filesystem::remove(proc.path() + kList);
  if (geteuid() != 0) SKIP_TEST("only root can give files away");
  proc.Write(kList, "1000 10 planted\n");
  REQUIRE(chown((proc.path() + kList).c_str(), 65534, 65534) == 0);
  JitMap planted(kPid, proc.path());
  CHECK(NameAt(planted, 0x1000).empty());
  CHECK(planted.status().message().find("owned by uid 65534") != std::string::npos);
}

// Writes a stat file of a process that was started so many seconds from now.
void StartAfter(TempFolder& proc, int seconds, pid_t pid = kPid) {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  std::string text = absl::StrFormat("%d (node) S 1", pid);
  for (int field = 5; field <= 52; ++field) {
    text += field == 22 ? absl::StrFormat(" %d", (now.tv_sec + seconds) * sysconf(_SC_CLK_TCK)) : " 0";
  }
  proc.Write(absl::StrFormat("/%d/stat", pid), text + "\n");
}

TEST_CASE("another user's list keeps a child from its parent's names, also beside a list that is older",
          "[jit_map][law]") {
  if (geteuid() != 0) SKIP_TEST("only root can give files away");
  const pid_t pid = 1'000'000'000 + getpid();  // No process has such a number.
  const std::string list = absl::StrFormat("/tmp/perf-%d.map", pid), own = absl::StrFormat("/%d/root%s", pid, list);
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 10 of_the_parent\n");
  proc.Write(absl::StrFormat("/%d/status", pid), absl::StrFormat("Uid:\t0\t0\t0\t0\nNSpid:\t%d\n", pid));
  proc.Write(own, "2000 10 older\n");
  StartAfter(proc, 3600, pid);
  std::ofstream(list) << "3000 10 of_another\n";
  const bool is_given = chown(list.c_str(), 65534, 65534) == 0;
  JitMap parent(kPid, proc.path());
  JitMap child(pid, proc.path(), &parent);
  const std::string name = NameAt(child, 0x1000);
  unlink(list.c_str());
  REQUIRE(is_given);
  CHECK(name.empty());
  CHECK(child.status().message().find("owned by uid 65534") != std::string::npos);
  CHECK(NameAt(child, 0x1000) == "of_the_parent");
}

TEST_CASE("a list of an earlier process with the same number is not believed", "[jit_map][law]") {
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 10 function\n");
  StartAfter(proc, 3600);
  JitMap later(kPid, proc.path());
  CHECK(NameAt(later, 0x1000).empty());
  CHECK(absl::IsFailedPrecondition(later.status()));
  CHECK_THAT(std::string(later.status().message()), Catch::Contains("list of an earlier process"));
  JitMap parent(kPid + 1, proc.path());
  JitMap child(kPid, proc.path(), &parent);
  CHECK(NameAt(child, 0x1000).empty());
  CHECK(child.status() == parent.status());  // A child that makes no code of its own needs no list.
  StartAfter(proc, -3600);
  JitMap own(kPid, proc.path());
  CHECK(NameAt(own, 0x1000) == "function");
  CHECK(own.status().ok());
}

TEST_CASE("a process's start is known as the kernel tells it", "[jit_map][law]") {
  const auto start = ReadStartNs(getpid());
  REQUIRE(start);
  const TempFolder made;
  struct stat after {};
  made.Write("/file", "");
  REQUIRE(stat((made.path() + "/file").c_str(), &after) == 0);
  CHECK(*start < static_cast<uint64_t>(after.st_ctim.tv_sec + 1) * 1'000'000'000);
  CHECK_FALSE(ReadStartNs(getpid(), made.path()));
}

TEST_CASE("a list is read up to the limit of bytes, and the functions before it stay known", "[jit_map]") {
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 10 first\n");
  std::filesystem::resize_file(proc.path() + kList, JitMap::kMaxBytes - 1);  // One long line of NULs, a hole.
  JitMap map(kPid, proc.path());
  CHECK(NameAt(map, 0x1000) == "first");
  CHECK(map.status().ok());  // That line has no end yet.
  Append(proc, "\n2000 10 beyond\n");
  for (int i = 0; i < 2; ++i) {
    CHECK(NameAt(map, 0x1000) == "first");
    CHECK(NameAt(map, 0x2000).empty());
    CHECK(map.functions() == 1);
    CHECK(absl::IsResourceExhausted(map.status()));
    CHECK(map.status().message().find("/tmp/perf-4711.map is longer than 67108864 bytes") != std::string::npos);
  }
}

TEST_CASE("a list beyond the limit of bytes is told, wherever its lines end", "[jit_map]") {
  TempFolder proc;
  AddStatus(proc).Write(kList, "1000 10 first\n");
  std::filesystem::resize_file(proc.path() + kList, JitMap::kMaxBytes + 100);
  Append(proc, "\n2000 10 beyond\n");
  JitMap map(kPid, proc.path());
  for (int i = 0; i < 3; ++i) {
    CHECK(NameAt(map, 0x1000) == "first");
    CHECK(NameAt(map, 0x2000).empty());
    CHECK(absl::IsResourceExhausted(map.status()));
  }
}

TEST_CASE("a list of too many functions has the first ones known", "[jit_map]") {
  constexpr uint64_t kBase = 0x1000000, kLast = kBase + JitMap::kMaxFunctions - 1;
  std::string text;
  for (uint64_t address = kBase; address < kLast; ++address) absl::StrAppendFormat(&text, "%x 1 f\n", address);
  TempFolder proc;
  AddStatus(proc).Write(kList, text);
  JitMap map(kPid, proc.path());
  CHECK(NameAt(map, kBase) == "f");
  CHECK(map.functions() == JitMap::kMaxFunctions - 1);
  CHECK(map.status().ok());
  Append(proc, absl::StrFormat("%x 1 last\n%x 1 beyond\n", kLast, kLast + 1));
  for (int i = 0; i < 2; ++i) {
    CHECK(NameAt(map, kBase) == "f");
    CHECK(NameAt(map, kLast) == "last");
    CHECK(NameAt(map, kLast + 1).empty());
    CHECK(map.functions() == JitMap::kMaxFunctions);
    CHECK(absl::IsResourceExhausted(map.status()));
    CHECK(map.status().message().find("or 1048576 functions") != std::string::npos);
    Append(proc, "2000 1 later\n");  // Not read.
  }
  CHECK(NameAt(map, 0x2000).empty());
}

TEST_CASE("a process in a container has the list of its number there", "[jit_map]") {
  TempFolder proc;
  proc.Write("/4711/status", absl::StrFormat("Uid:\t0\t%d\t0\t0\nNSpid:\t4711\t7\n", geteuid()));
  proc.Write(
      "/4711/root"
      "/tmp/perf-7.map",
      "1000 10 inside\n");
  JitMap map(kPid, proc.path());
  CHECK(NameAt(map, 0x1000) == "inside");
}

}  // namespace
}  // namespace perfkit::proc
