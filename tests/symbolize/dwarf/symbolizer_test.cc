// The Symbolizer with lines: exact results for a small program, its statuses when something is missing, many locations
// at once, little memory, compressed symbols.
#include <catch2/catch.hpp>

#include "tests/symbolize/dwarf/support.h"

namespace perfkit {
namespace {

using testing::Answer;
using testing::kLoadBias;
using testing::MapCode;
using testing::RunCommand;
using testing::TempFolder;

constexpr char kProgram[] =
    "volatile int sink;\n"
    "static inline __attribute__((always_inline)) void Inner(int x) {\n"
    "  sink = x;\n"
    "}\n"
    "static inline __attribute__((always_inline)) void Middle(int x) {\n"
    "  if (sink) Inner(x);\n"
    "}\n"
    "void Outer() {\n"
    "  Middle(5);\n"
    "}\n"
    "int main() { Outer(); }\n";

// Compiles it to `name` in the folder.
bool Make(const TempFolder& folder, const std::string& name, const std::string& compiler = "g++ -O1 -g") {
  folder.Write("/small.cc", kProgram);
  return RunCommand("cd " + folder.path() + " && " + compiler + " small.cc -o " + name).exit_code == 0;
}

std::vector<CodeLocation> LocationsIn(Symbolizer& symbolizer, const std::string& path, size_t count) {
  std::vector<CodeLocation> locations;
  for (const uint64_t address : testing::AddressesIn(path, count)) {
    locations.push_back(symbolizer.Locate(1, kLoadBias + address));
  }
  return locations;
}

TEST_CASE("inlined calls are given from the inside out, with lines and columns", "[symbolizer]") {
  const TempFolder folder;
  if (!Make(folder, "small")) SKIP_TEST("there is no compiler here");
  const std::string path = folder.path() + "/small", source = folder.path() + "/small.cc";
  Symbolizer symbolizer({.lines = DwarfLines});
  MapCode(symbolizer, path, kLoadBias);
  bool found = false;
  for (const uint64_t address : testing::AddressesIn(path, 300)) {
    const CodeLocation location = symbolizer.Locate(1, kLoadBias + address);
    const auto frames = symbolizer.Inlined(location);
    REQUIRE_FALSE(frames.empty());
    CHECK(frames.back().function == symbolizer.Name(location).function);
    if (frames[0].function != "Inner(int)" && frames[0].function != "Inner") continue;
    found = true;
    REQUIRE(frames.size() == 3);
    CHECK(frames[0].line == 3);
    CHECK(frames[0].column == 8);
    CHECK(frames[0].inlined);
    CHECK(frames[1].function.starts_with("Middle"));
    CHECK(frames[1].line == 6);
    CHECK(frames[1].column == 18);
    CHECK(frames[1].inlined);
    CHECK(frames[2].function == "Outer()");
    CHECK(frames[2].line == 9);
    CHECK(frames[2].column == 9);
    CHECK_FALSE(frames[2].inlined);
    for (const SourceFrame& frame : frames) CHECK(frame.file == source);
  }
  CHECK(found);
}

// The status of lines in the only module, after asking for a place in it.
absl::Status LinesStatus(Symbolizer& symbolizer, const std::string& path) {
  MapCode(symbolizer, path, kLoadBias);
  for (const CodeLocation location : LocationsIn(symbolizer, path, 3)) {
    const auto frames = symbolizer.Inlined(location);
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].function == symbolizer.Name(location).function);
    CHECK(frames[0].line == 0);
  }
  REQUIRE(symbolizer.Modules().size() == 1);
  CHECK(symbolizer.Modules()[0].status.ok());
  return symbolizer.Modules()[0].lines;
}

bool Says(const absl::Status& status, std::string_view words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

TEST_CASE("what is missing is said, with what would help", "[symbolizer]") {
  const TempFolder folder;
  if (!Make(folder, "small") || !Make(folder, "bare", "g++ -O1 -Wl,--build-id=0xabcdef")) {
    SKIP_TEST("there is no compiler here");
  }
  Symbolizer without_reader, without_information({.lines = DwarfLines});
  const absl::Status no_reader = LinesStatus(without_reader, folder.path() + "/small");
  CHECK(absl::IsUnimplemented(no_reader));
  CHECK(Says(no_reader, "perfkit::DwarfLines"));
  const absl::Status none = LinesStatus(without_information, folder.path() + "/bare");
  CHECK(absl::IsNotFound(none));
  for (const char* words : {"/bare", "-g", "-dbgsym", "abcdef", "/usr/lib/debug"}) CHECK(Says(none, words));
}

TEST_CASE("sections in an unknown packing are named", "[symbolizer]") {
  const TempFolder folder;
  if (!Make(folder, "small", "g++ -O1 -g -gz")) SKIP_TEST("there is no compiler here");
  const std::string path = folder.path() + "/small";
  // The first word of the section says how it is packed: 1 is zlib.
  const std::string offset =
      RunCommand("readelf -SW " + path + " | sed -n 's/.*\\.debug_info *PROGBITS *[0-9a-f]* *\\([0-9a-f]*\\) .*/\\1/p'")
          .output;
  const auto at = static_cast<long>(std::strtoul(offset.c_str(), nullptr, 16));
  REQUIRE(at > 0);
  FILE* const file = fopen(path.c_str(), "r+b");
  REQUIRE(file != nullptr);
  fseek(file, at, SEEK_SET);
  fputc(9, file);
  fclose(file);
  Symbolizer symbolizer({.lines = DwarfLines});
  const absl::Status status = LinesStatus(symbolizer, path);
  INFO(status);
  CHECK(Says(status, ".debug_info"));
  CHECK(Says(status, "compressed by method 9, which is neither zlib nor zstd"));
}

TEST_CASE("places of nothing that is known have one frame without a name", "[symbolizer]") {
  Symbolizer symbolizer({.lines = DwarfLines});
  for (const CodeLocation location : {CodeLocation{}, CodeLocation{.module = 999, .offset = 5}}) {
    REQUIRE(symbolizer.Inlined(location).size() == 1);
    CHECK(symbolizer.Inlined(location)[0].function.empty());
  }
}

std::string Flat(std::span<const SourceFrame> frames) {
  std::string text;
  for (const SourceFrame& frame : frames) {
    text += absl::StrFormat("%s %s:%d:%d %d\n", frame.function, frame.file, frame.line, frame.column, frame.inlined);
  }
  return text;
}

TEST_CASE("many places come with progress, each the same as alone, until the visitor stops", "[symbolizer]") {
  Symbolizer many({.lines = DwarfLines}), alone({.lines = DwarfLines});
  const std::string self = testing::SelfPath();
  MapCode(many, self, kLoadBias);
  MapCode(alone, self, kLoadBias);
  std::vector<CodeLocation> locations = LocationsIn(many, self, 500);
  locations.push_back({});
  REQUIRE(locations.size() > 400);
  std::vector<std::string> texts(locations.size());
  size_t done = 0;
  CHECK(many.ResolveAll(locations, [&](const ResolvedLocation& location) {
    CHECK(location.done == ++done);
    CHECK(location.symbol.function == alone.Name(locations[location.index]).function);
    texts[location.index] = Flat(location.frames);
    return true;
  }));
  CHECK(done == locations.size());
  for (size_t i = 0; i < locations.size(); ++i) CHECK(texts[i] == Flat(alone.Inlined(locations[i])));
  size_t visits = 0;
  CHECK_FALSE(many.ResolveAll(locations, [&](const ResolvedLocation&) { return ++visits < 10; }));
  CHECK(visits == 10);
  CHECK(many.ResolveAll({}, [](const ResolvedLocation&) { return false; }));
}

TEST_CASE("with hardly any memory the answers are the same", "[symbolizer]") {
  Symbolizer rich({.lines = DwarfLines}), poor({.lines = DwarfLines, .lines_cache_bytes = 1});
  const std::string self = testing::SelfPath();
  MapCode(rich, self, kLoadBias);
  MapCode(poor, self, kLoadBias);
  std::vector<CodeLocation> locations = LocationsIn(rich, self, 60);
  std::shuffle(locations.begin(), locations.end(), std::mt19937(3));
  for (const CodeLocation location : locations) CHECK(Flat(poor.Inlined(location)) == Flat(rich.Inlined(location)));
}

// As Fedora's build does it: GDB's manual, "Debugging information in a special section".
TEST_CASE("names that are packed in the file are unpacked, or said to be there", "[symbolizer]") {
  const TempFolder folder;
  if (!Make(folder, "full", "g++ -O1 -g")) SKIP_TEST("there is no compiler here");
  if (RunCommand("xz --version").exit_code != 0) SKIP_TEST("there is no xz here");
  REQUIRE(RunCommand("cd " + folder.path() +
                     " && objcopy -S --keep-symbol=main --keep-symbol=_Z5Outerv full mini && xz -k mini &&"
                     " objcopy -S --add-section .gnu_debugdata=mini.xz full packed")
              .exit_code == 0);
  const std::string path = folder.path() + "/packed", full = folder.path() + "/full";
  const uint64_t address = std::strtoull(RunCommand("nm " + full + " | grep _Z5Outerv").output.c_str(), nullptr, 16);
  Symbolizer with({.lines = DwarfLines}), without;
  MapCode(with, path, kLoadBias);
  MapCode(without, path, kLoadBias);
  CHECK(with.Resolve(1, kLoadBias + address).function == "Outer()");
  CHECK(with.Modules()[0].status.ok());
  CHECK_FALSE(without.Resolve(1, kLoadBias + address).named());
  CHECK(Says(without.Modules()[0].status, ".gnu_debugdata"));
  CHECK(Says(without.Modules()[0].status, "perfkit::dwarf"));
  // One that is none.
  REQUIRE(RunCommand("cd " + folder.path() + " && objcopy -S --add-section .gnu_debugdata=small.cc full packed")
              .exit_code == 0);
  Symbolizer damaged({.lines = DwarfLines});
  MapCode(damaged, path, kLoadBias);
  CHECK_FALSE(damaged.Resolve(1, kLoadBias + address).named());
  CHECK_FALSE(damaged.Modules()[0].status.ok());
}

TEST_CASE("that debug information is split is said, and lines are given", "[symbolizer]") {
  for (const std::string compiler :
       {"g++ -O1 -gdwarf-5", "g++ -O1 -gdwarf-4", "clang++ -O1 -gdwarf-5", "clang++ -O1 -gdwarf-4"}) {
    const TempFolder folder;
    if (!Make(folder, "whole", compiler) || !Make(folder, "split", compiler + " -gsplit-dwarf")) continue;
    INFO(compiler);
    const std::string path = folder.path() + "/split", whole = folder.path() + "/whole";
    Symbolizer symbolizer({.lines = DwarfLines}), unsplit({.lines = DwarfLines});
    MapCode(symbolizer, path, kLoadBias);
    MapCode(unsplit, whole, kLoadBias);
    const auto address = std::strtoull(RunCommand("nm " + path + " | grep _Z5Outerv").output.c_str(), nullptr, 16);
    const auto frames = symbolizer.Inlined(symbolizer.Locate(1, kLoadBias + address));
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].function == "Outer()");
    CHECK(frames[0].file == folder.path() + "/small.cc");
    CHECK(Says(symbolizer.Modules()[0].lines, "1 of 1 units"));
    CHECK(Says(symbolizer.Modules()[0].lines, ".dwo"));
    unsplit.Inlined(unsplit.Locate(1, kLoadBias + address));
    CHECK(unsplit.Modules()[0].lines.ok());
  }
}

TEST_CASE("what dwz has moved to a file of its own is found there", "[symbolizer]") {
  const TempFolder folder;
  if (RunCommand("dwz --version").exit_code != 0) SKIP_TEST("there is no dwz here");
  REQUIRE(Make(folder, "one", "g++ -O2 -g -gdwarf-4"));
  REQUIRE(Make(folder, "two", "g++ -O3 -g -gdwarf-4"));
  REQUIRE(RunCommand("cd " + folder.path() + " && cp one plain && dwz -m shared one two").exit_code == 0);
  const std::string one = folder.path() + "/one", plain = folder.path() + "/plain";
  Symbolizer before({.lines = DwarfLines}), after({.lines = DwarfLines});
  MapCode(before, plain, kLoadBias);
  MapCode(after, one, kLoadBias);
  for (const uint64_t address : testing::AddressesIn(one, 200)) {
    CHECK(Flat(after.Inlined(after.Locate(1, kLoadBias + address))) ==
          Flat(before.Inlined(before.Locate(1, kLoadBias + address))));
  }
  CHECK(after.Modules()[0].lines.ok());
  REQUIRE(RunCommand("rm " + folder.path() + "/shared").exit_code == 0);
  Symbolizer missing({.lines = DwarfLines});
  MapCode(missing, one, kLoadBias);
  missing.Inlined(LocationsIn(missing, one, 1)[0]);
  CHECK(Says(missing.Modules()[0].lines, "gnu_debugaltlink"));
}

}  // namespace
}  // namespace perfkit
