// Stripped files and their separate symbols, made by objcopy and strip.
#include "src/symbolize/debug_file.h"

#include <catch2/catch.hpp>

#include "tests/elf/elf_builder.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/symbolize/support.h"

namespace perfkit::symbolize {
namespace {

using testing::Compile;
using testing::RunCommand;
using testing::TempFolder;

constexpr char kProgram[] =
    "__attribute__((noinline)) static int hidden(int x) { return x * 3 + 1; }\n"
    "int main(int argc, char** argv) { return hidden(argc) + hidden(argc + 1); }\n";

// Where `hidden` is, by nm.
uint64_t AddressOfHidden(const std::string& path) {
  return std::strtoull(RunCommand("nm " + path + " | grep ' hidden'").output.c_str(), nullptr, 16);
}

std::string NameAt(const std::string& path, uint64_t address, const std::string& debug_root, std::string* debug_file) {
  constexpr uint64_t kBias = 0x10000000;
  Symbolizer symbolizer({.debug_root = debug_root});
  testing::MapCode(symbolizer, path, kBias);
  const Symbol symbol = symbolizer.Resolve(1, kBias + address);
  CHECK(symbolizer.Modules().size() == 1);
  *debug_file = symbolizer.Modules()[0].debug_file;
  if (symbol.named()) return std::string(symbol.function);
  CHECK(symbol.offset == address);  // without a name: where it is, as nm counts
  return "-";
}

TEST_CASE("the checksum is zlib's", "[debug_file]") {
  CHECK(Crc32(testing::BytesOf("123456789")) == 0xcbf43926);  // the check value of the CRC catalogues
  CHECK(Crc32({}) == 0);
}

TEST_CASE("a stripped file is named by its debuglink, in each place where that may lead", "[debug_file]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/program", full = folder.path() + "/full";
  if (!Compile("c++ -O1 -Wl,--build-id=none", kProgram, full)) SKIP_TEST("there is no compiler here");
  const uint64_t address = AddressOfHidden(full);
  REQUIRE(address > 0);
  const std::string debug = path + ".debug";
  REQUIRE(RunCommand("objcopy --only-keep-debug " + full + " " + debug).exit_code == 0);
  REQUIRE(
      RunCommand("strip -o " + path + " " + full + " && objcopy --add-gnu-debuglink=" + debug + " " + path).exit_code ==
      0);
  std::string used;
  CHECK(NameAt(path, address, "", &used) == "hidden");
  CHECK(used == debug);
  const std::string root = folder.path() + "/root";
  for (const std::string& location : {folder.path() + "/.debug", root + folder.path()}) {
    INFO(location);
    REQUIRE(RunCommand("mkdir -p " + location + " && cp " + debug + " " + location + " && mv " + debug + " " + debug +
                       ".no")
                .exit_code == 0);
    CHECK(NameAt(path, address, root, &used) == "hidden");
    CHECK(used == location + "/program.debug");
    REQUIRE(RunCommand("rm " + location + "/program.debug && mv " + debug + ".no " + debug).exit_code == 0);
  }
  // A file of another build under that name.
  REQUIRE(RunCommand("cp " + full + " " + debug).exit_code == 0);
  CHECK(NameAt(path, address, "", &used) == "-");
  CHECK(used.empty());
}

TEST_CASE("a debug file may have the name of its stripped file", "[debug_file]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/program", full = folder.path() + "/full";
  if (!Compile("c++ -O1 -Wl,--build-id=0xabcdef0123", kProgram, full)) SKIP_TEST("there is no compiler here");
  const uint64_t address = AddressOfHidden(full);
  const std::string debug = folder.path() + "/.debug/program";
  REQUIRE(RunCommand("cd " + folder.path() + " && mkdir .debug && objcopy --only-keep-debug full .debug/program && " +
                     "strip -o program full && objcopy --add-gnu-debuglink=.debug/program program && " +
                     "ln -s program link")
              .exit_code == 0);
  std::string used;
  for (const std::string& module : {path, folder.path() + "/link"}) {
    INFO(module);
    CHECK(NameAt(module, address, "", &used) == "hidden");
    CHECK(used == debug);
  }
}

TEST_CASE("a stripped file is named by its build-id", "[debug_file]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/program", full = folder.path() + "/full";
  if (!Compile("c++ -O1 -Wl,--build-id=0xabcdef0123", kProgram, full)) SKIP_TEST("there is no compiler here");
  const uint64_t address = AddressOfHidden(full);
  const std::string root = folder.path() + "/root", location = root + "/.build-id/ab";
  REQUIRE(RunCommand("mkdir -p " + location + " && strip -o " + path + " " + full + " && objcopy --only-keep-debug " +
                     full + " " + location + "/cdef0123.debug")
              .exit_code == 0);
  std::string used;
  CHECK(NameAt(path, address, root, &used) == "hidden");
  CHECK(used == location + "/cdef0123.debug");
  CHECK(NameAt(path, address, "", &used) == "-");
  // A file that is not a debug file.
  REQUIRE(Compile("c++ -O1 -Wl,--build-id=0xabcdef9999", kProgram, full));
  REQUIRE(RunCommand("cp " + full + " " + location + "/cdef0123.debug").exit_code == 0);
  CHECK(NameAt(path, address, root, &used) == "-");
}

TEST_CASE("a debuglink that is a path leads nowhere", "[debug_file]") {
  for (const std::string name : {"../secret", "/etc/passwd", "..", ".", ""}) {
    testing::ElfBuilder builder;
    std::string contents = name + '\0';
    contents.resize((contents.size() + 3) / 4 * 4 + 4);
    builder.AddSection(".gnu_debuglink", {.sh_type = SHT_PROGBITS}, contents);
    const std::string file = builder.Build();
    const absl::StatusOr<elf::Image> image = elf::Image::Parse(testing::BytesOf(file));
    REQUIRE(image.ok());
    CHECK_FALSE(FindDebugFile(*image, "/tmp/program", "/usr/lib/debug"));
  }
}

}  // namespace
}  // namespace perfkit::symbolize
