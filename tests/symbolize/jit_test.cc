// Names of code without a file: by process and its lifetime, and while the list of names grows.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "absl/strings/str_format.h"
#include "tests/support/temp_folder.h"
#include "tests/symbolize/support.h"

namespace perfkit {
namespace {

using testing::Feed;
using testing::MmapBytes;
using testing::RecordBuilder;
using testing::TempFolder;

void WriteProcess(const TempFolder& proc, uint32_t pid, const std::string& list) {
  proc.Write(absl::StrFormat("/%d/status", pid), absl::StrFormat("Uid:\t%d\t%d\n", geteuid(), geteuid()));
  proc.Write(absl::StrFormat("/%d/root"
                             "/tmp/perf-%d.map",
                             pid, pid),
             list);
}

void MapAnonymous(Symbolizer& symbolizer, uint32_t pid) {
  Feed(symbolizer, MmapBytes({.pid = pid, .address = 0x1000, .length = 0x1000, .name = "//anon"}));
}

TEST_CASE("code made at run time has the names that its own process lists", "[symbolizer][jit]") {
  const TempFolder proc;
  WriteProcess(proc, 41, "1100 40 of_one\n");
  WriteProcess(proc, 42, "1100 40 of_two\n");
  Symbolizer symbolizer({.proc = proc.path()});
  MapAnonymous(symbolizer, 41);
  MapAnonymous(symbolizer, 42);
  const CodeLocation one = symbolizer.Locate(41, 0x1110), two = symbolizer.Locate(42, 0x1110);
  CHECK(one != two);
  CHECK(symbolizer.Name(one).function == "of_one");
  CHECK(symbolizer.Name(one).offset == 0x10);
  CHECK(symbolizer.Name(one).module == "//anon");
  CHECK(symbolizer.Name(two).function == "of_two");
  CHECK(symbolizer.Inlined(two).front().function == "of_two");
}

TEST_CASE("a name that comes later is found later", "[symbolizer][jit]") {
  const TempFolder proc;
  WriteProcess(proc, 41, "");
  Symbolizer symbolizer({.proc = proc.path()});
  MapAnonymous(symbolizer, 41);
  for (int i = 0; i < 2; ++i) {
    CHECK_FALSE(symbolizer.Resolve(41, 0x1110).named());
    CHECK(symbolizer.Inlined(symbolizer.Locate(41, 0x1110)).front().function.empty());
  }
  WriteProcess(proc, 41, "1100 40 made_now\n");
  CHECK(symbolizer.Inlined(symbolizer.Locate(41, 0x1110)).front().function == "made_now");
  CHECK(symbolizer.Resolve(41, 0x1110).function == "made_now");
}

TEST_CASE("an address that was used again has its new name everywhere", "[symbolizer][jit]") {
  const TempFolder proc;
  const std::string old_lines = "1100 40 old_one\n";
  WriteProcess(proc, 41, old_lines);
  Symbolizer symbolizer({.proc = proc.path()});
  MapAnonymous(symbolizer, 41);
  const CodeLocation location = symbolizer.Locate(41, 0x1110);
  CHECK(symbolizer.Name(location).function == "old_one");
  CHECK(symbolizer.Resolve(41, 0x1110).function == "old_one");
  CHECK(symbolizer.Inlined(location).front().function == "old_one");
  WriteProcess(proc, 41, old_lines + "1100 40 new_one\n1200 40 other\n");
  CHECK(symbolizer.Resolve(41, 0x1210).function == "other");
  CHECK(symbolizer.Resolve(41, 0x1130).function == "new_one");
  CHECK(symbolizer.Name(location).function == "new_one");
  CHECK(symbolizer.Resolve(41, 0x1110).function == "new_one");
  CHECK(symbolizer.Inlined(location).front().function == "new_one");
}

TEST_CASE("after exec the same address is another program's", "[symbolizer][jit]") {
  const TempFolder proc;
  WriteProcess(proc, 41, "1100 40 before\n");
  Symbolizer symbolizer({.proc = proc.path()});
  MapAnonymous(symbolizer, 41);
  const CodeLocation before = symbolizer.Locate(41, 0x1110);
  CHECK(symbolizer.Name(before).function == "before");
  Feed(symbolizer, RecordBuilder().U32(41).U32(41).Text("new").Finish(RecordType::kComm, kMiscCommExec));
  MapAnonymous(symbolizer, 41);
  CHECK(symbolizer.Locate(41, 0x1110) != before);
}

TEST_CASE("a list that is not believed is told among the modules", "[symbolizer][jit]") {
  const TempFolder proc;
  proc.Write("/41/status", "Uid:\t1\t1\n");
  Symbolizer symbolizer({.proc = proc.path()});
  MapAnonymous(symbolizer, 41);
  CHECK_FALSE(symbolizer.Resolve(41, 0x1110).named());
  const std::vector<SymbolizedModule> modules = symbolizer.Modules();
  REQUIRE(modules.size() == 1);
  CHECK(modules[0].name == "//anon");
  CHECK_FALSE(modules[0].status.ok());
}

}  // namespace
}  // namespace perfkit
