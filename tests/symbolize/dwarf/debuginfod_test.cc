// Debug files from a debuginfod server: elfutils' client reads a folder with the structure of a server's replies.
#include "perfkit/debuginfod.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <string>

#include "perfkit/dwarf_lines.h"
#include "src/elf/notes.h"
#include "src/symbolize/debug_fetcher.h"
#include "src/sys/map_file.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/symbolize/support.h"

namespace perfkit::symbolize {
namespace {

using testing::Compile;
using testing::RunCommand;
using testing::TempFolder;

constexpr uint64_t kBias = 0x10000000;
constexpr char kFetchedProgram[] =
    "__attribute__((noinline)) static int hidden(int x) { return x * 3 + 1; }\n"
    "int main(int argc, char** argv) { return hidden(argc) + hidden(argc + 1); }\n";

// Variables of this process, as they were when it ends.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* const name_;
};

// A program without symbols, and its debug file where the server of `folder` has it: FOLDER/buildid/ID/debuginfo.
struct Stripped {
  std::string path, id;
  uint64_t address = 0;  // of `hidden`
};

std::optional<Stripped> MakeStripped(const TempFolder& folder) {
  const std::string full = folder.path() + "/full";
  Stripped made{.path = folder.path() + "/program"};
  if (!Compile("c++ -g -O1 -Wl,--build-id", kFetchedProgram, full)) return std::nullopt;
  made.address = std::strtoull(RunCommand("nm " + full + " | grep hidden").output.c_str(), nullptr, 16);
  const absl::StatusOr<sys::Mapping> file = sys::MapFile(full);
  REQUIRE(file.ok());
  made.id = elf::HexText(elf::BuildId(*elf::Image::Parse(file->bytes())).value());
  const std::string location = folder.path() + "/server/buildid/" + made.id;
  std::filesystem::create_directories(location);
  REQUIRE(RunCommand("objcopy --only-keep-debug " + full + " " + location + "/debuginfo").exit_code == 0);
  REQUIRE(RunCommand("strip -o " + made.path + " " + full).exit_code == 0);
  return made;
}

struct Answer {
  std::string function, file, debug_file, lines;
};

// What is known of `hidden`.
Answer Ask(const Stripped& stripped, std::unique_ptr<DebugFetcher> (*fetch)()) {
  Symbolizer symbolizer({.debug_root = "", .lines = DwarfLines, .fetch = fetch});
  testing::MapCode(symbolizer, stripped.path, kBias);
  const SourceFrame frame = symbolizer.Inlined(symbolizer.Locate(1, kBias + stripped.address)).front();
  const SymbolizedModule module = symbolizer.Modules().at(0);
  return {std::string(frame.function), std::string(frame.file), module.debug_file, std::string(module.lines.message())};
}

bool Has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

// The client's library is not everywhere.
bool CannotLoad(const Answer& answer) { return Has(answer.lines, "libdebuginfod.so.1 cannot be loaded"); }

TEST_CASE("a debug file that is not here comes from a server, where that is asked for", "[debuginfod]") {
  const TempFolder folder;
  const std::optional<Stripped> stripped = MakeStripped(folder);
  if (!stripped) SKIP_TEST("there is no compiler here");
  const Variable urls("DEBUGINFOD_URLS", "file://" + folder.path() + "/server"),
      cache("DEBUGINFOD_CACHE_PATH", folder.path() + "/cache");
  const Answer without = Ask(*stripped, nullptr);
  CHECK(without.function.empty());
  CHECK(without.debug_file.empty());
  CHECK(Has(without.lines, "SymbolizerOptions{.fetch = perfkit::Debuginfod}"));
  const Answer with = Ask(*stripped, Debuginfod);
  if (CannotLoad(with)) SKIP_TEST(with.lines);
  CHECK(with.function == "hidden");
  CHECK(with.lines == "");
  CHECK(with.debug_file.starts_with(folder.path() + "/cache/"));
  CHECK_FALSE(with.file.empty());
}

TEST_CASE("a server that is not named, has no such build, or has another one is said in words", "[debuginfod]") {
  const TempFolder folder;
  const std::optional<Stripped> stripped = MakeStripped(folder);
  if (!stripped) SKIP_TEST("there is no compiler here");
  unsetenv("DEBUGINFOD_URLS");
  CHECK(Has(Ask(*stripped, Debuginfod).lines, "DEBUGINFOD_URLS names no server"));

  const std::string server = folder.path() + "/server";
  const Variable cache("DEBUGINFOD_CACHE_PATH", folder.path() + "/cache");
  {
    const Variable urls("DEBUGINFOD_URLS", "file://" + folder.path() + "/missing");
    const Answer missing = Ask(*stripped, Debuginfod);
    if (CannotLoad(missing)) SKIP_TEST(missing.lines);
    CHECK(missing.function.empty());
    CHECK(Has(missing.lines, "asking file://" + folder.path() + "/missing for build-id " + stripped->id));
  }
  std::filesystem::remove_all(folder.path() + "/cache");
  REQUIRE(RunCommand("cp /bin/sh " + server + "/buildid/" + stripped->id + "/debuginfo").exit_code == 0);
  const Variable urls("DEBUGINFOD_URLS", "file://" + server);
  const Answer other = Ask(*stripped, Debuginfod);
  CHECK(other.function.empty());
  CHECK(Has(other.lines, "was downloaded, but belongs to another build"));
}

TEST_CASE("the answer of a server that the environment names", "[.other_rights]") {
  std::puts(std::string(Debuginfod()->Fetch(base::Bytes()).status().message()).c_str());
}

TEST_CASE("a program with other rights than its user asks no server that its environment names", "[debuginfod]") {
  if (geteuid() != 0) SKIP_TEST("only root can make a program with other rights");
  const TempFolder folder;
  const std::string path = folder.path() + "/program";
  struct statvfs volume = {};
  if (statvfs(folder.path().c_str(), &volume) != 0 || (volume.f_flag & ST_NOSUID) != 0) SKIP_TEST("/tmp is nosuid");
  constexpr gid_t kOtherGroup = 65534;
  std::filesystem::copy_file("/proc/self/exe", path);
  REQUIRE(chown(path.c_str(), static_cast<uid_t>(-1), kOtherGroup) == 0);
  const std::string run = "DEBUGINFOD_URLS=file:///nowhere " + path + " '[.other_rights]'";
  REQUIRE(chmod(path.c_str(), 0755) == 0);
  CHECK_FALSE(Has(RunCommand(run).output, "is not read"));
  REQUIRE(chmod(path.c_str(), 02755) == 0);
  CHECK(Has(RunCommand(run).output, "DEBUGINFOD_URLS is not read in a program that has other rights than its user"));
}

TEST_CASE("no server is asked for what a file has itself", "[debuginfod]") {
  const TempFolder folder;
  std::optional<Stripped> stripped = MakeStripped(folder);
  if (!stripped) SKIP_TEST("there is no compiler here");
  stripped->path = folder.path() + "/full";
  unsetenv("DEBUGINFOD_URLS");  // it would be an error to ask
  const Answer answer = Ask(*stripped, Debuginfod);
  CHECK(answer.function == "hidden");
  CHECK(answer.lines == "");
  CHECK(answer.debug_file.empty());
}

}  // namespace
}  // namespace perfkit::symbolize
