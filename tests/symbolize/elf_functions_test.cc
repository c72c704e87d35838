// Functions of built ELF files, and of real ones that were truncated or overwritten.
#include "src/symbolize/elf_functions.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "src/symbolize/demangle.h"
#include "tests/elf/elf_builder.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/symbolize/support.h"

namespace perfkit::symbolize {
namespace {

using testing::BytesOf;
using testing::SymbolBytes;

SymbolTable TableOf(const std::string& file) {
  SymbolTableBuilder builder(file.size());
  const absl::StatusOr<elf::Image> image = elf::Image::Parse(BytesOf(file));
  if (image.ok()) {
    AddFunctions(*image, builder);
    AddPltStubs(*image, builder);
  }
  return std::move(builder).Build();
}

std::string NameIn(const SymbolTable& table, uint64_t address) {
  const auto found = table.Find(address);
  return found ? std::string(found->name) : "-";
}

TEST_CASE("code is taken, data, imports and marks are not", "[elf_functions]") {
  testing::ElfBuilder builder;
  const Elf64_Shdr code{.sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR, .sh_addr = 0x1000, .sh_size = 0x100};
  const uint16_t text = builder.AddSection(".text", code, std::string(0x100, '\x90'));
  const uint16_t data = builder.AddSection(".data", {.sh_type = SHT_PROGBITS, .sh_addr = 0x3000}, "12345678");
  const std::string names = std::string("\0func\0ifunc\0label\0.L1\0$x\0data\0import\0abs\0v@@V1\0", 47);
  const auto at = [&](const char* name) { return static_cast<uint32_t>(names.find(std::string("\0", 1) + name) + 1); };
  builder.AddSection(
      ".symtab", {.sh_type = SHT_SYMTAB, .sh_link = 4, .sh_entsize = sizeof(Elf64_Sym)},
      SymbolBytes(0, 0, 0, 0) + SymbolBytes(at("func"), STT_FUNC, text, 0x1000) +
          SymbolBytes(at("ifunc"), STT_GNU_IFUNC, text, 0x1010) +
          SymbolBytes(at("label"), STT_NOTYPE, text, 0x1020, 0) + SymbolBytes(at(".L1"), STT_NOTYPE, text, 0x1030, 0) +
          SymbolBytes(at("$x"), STT_NOTYPE, text, 0x1038, 0) + SymbolBytes(at("data"), STT_OBJECT, data, 0x3000) +
          SymbolBytes(at("import"), STT_FUNC, 0, 0x1040) + SymbolBytes(at("abs"), STT_FUNC, SHN_ABS, 0x1050) +
          SymbolBytes(at("v@@V1"), STT_FUNC, text, 0x1060));
  builder.AddSection(".strtab", {.sh_type = SHT_STRTAB}, names);
  const SymbolTable table = TableOf(builder.Build());
  CHECK(NameIn(table, 0x1000) == "func");
  CHECK(NameIn(table, 0x1017) == "ifunc");
  CHECK(NameIn(table, 0x1020) == "label");
  CHECK(NameIn(table, 0x1045) == "label");  // to the next function, as its size is unknown
  CHECK(NameIn(table, 0x1060) == "v");
  CHECK(NameIn(table, 0x1070) == "-");
  CHECK(NameIn(table, 0x3000) == "-");
}

TEST_CASE("a program that is cut off or overwritten at any word costs names, never more", "[elf_functions]") {
  const testing::TempFolder folder;
  const std::string path = folder.path() + "/program";
  if (!testing::Compile("c++ -O1 -shared -fPIC -nostdlib -Wl,-z,lazy",
                        "extern int far(int); int near(int x) { return far(x) + 1; }\n", path)) {
    SKIP_TEST("there is no compiler here");
  }
  const absl::StatusOr<sys::Mapping> file = sys::MapFile(path);
  REQUIRE(file.ok());
  const std::string whole(reinterpret_cast<const char*>(file->data()), file->size());
  REQUIRE(TableOf(whole).size() >= 2);
  size_t most = 0;
  for (size_t at = 0; at + 8 <= whole.size(); at += 8) {
    // A copy of exactly that size, so that a sanitizer sees the byte after it.
    most = std::max(most, TableOf(std::string(whole.data(), at)).size());
    for (const uint64_t value : {~uint64_t{0}, uint64_t{0xfff0}}) {
      std::string changed = whole;
      std::memcpy(changed.data() + at, &value, sizeof(value));
      most = std::max(most, TableOf(changed).size());
    }
  }
  CHECK(most <= 4 * TableOf(whole).size() + 16);
}

TEST_CASE("C++ names are made readable, all else stays as it is", "[demangle]") {
  CHECK(Demangle("_ZN4game4StepEv") == "game::Step()");
  CHECK(Demangle("_ZN4game4StepEv@plt") == "game::Step()@plt");
  CHECK(Demangle("main") == "main");
  CHECK(Demangle("") == "");
  CHECK(Demangle("_Z") == "_Z");
  CHECK(Demangle("_Znonsense(") == "_Znonsense(");
  CHECK(Demangle("i") == "i");  // a type's mangled name, but no function's
}

// void f(A, B<A, A>, B<B<A, A>, B<A, A>>, …): twice as long with each level.
std::string Doubling(int levels) {
  constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name = "_Z1f1A", last = "S_";
  for (int level = 0; level < levels; ++level) {
    name += "1BI" + last + last + "E";
    const int index = 2 * level + 1;
    last = "S" + (index < 36 ? "" : std::string(1, kDigits[index / 36])) + kDigits[index % 36] + "_";
  }
  return name;
}

TEST_CASE("names that stand for more than memory holds stay as they are", "[demangle]") {
  CHECK(Demangle(Doubling(2)) == "f(A, B<A, A>, B<B<A, A>, B<A, A> >)");
  CHECK(Demangle(Doubling(10)).size() > 10'000);
  for (const int levels : {24, 40, 60}) CHECK(Demangle(Doubling(levels)) == Doubling(levels));
}

}  // namespace
}  // namespace perfkit::symbolize
