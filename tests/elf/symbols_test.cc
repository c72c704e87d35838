// Symbol tables of a built file, and of real ones, compared with readelf's output.
#include "src/elf/symbols.h"

#include <elf.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cinttypes>
#include <cstdio>
#include <set>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/base/text.h"
#include "src/sys/files.h"
#include "tests/elf/elf_builder.h"
#include "tests/support/skip.h"

namespace perfkit::elf {
namespace {

using testing::BytesOf;
using testing::ElfBuilder;
using testing::SymbolBytes;

// "address size name", with '@' after an old version if that is compared; unordered.
using Rows = std::multiset<std::string>;

std::string Row(uint64_t address, uint64_t size, std::string_view name, bool old_version) {
  return absl::StrFormat("%x %d %s%s", address, size, name, old_version ? "@" : "");
}

// Returns some elements that only `a` has, for a failure's message.
std::string OnlyIn(const Rows& a, const Rows& b) {
  std::vector<std::string> only;
  std::ranges::set_difference(a, b, std::back_inserter(only));
  std::string text;
  for (size_t i = 0; i < only.size() && i < 5; ++i) text += "[" + only[i] + "] ";
  return text;
}

Rows OurRows(const Image& image, SymbolTable table, bool versions) {
  Rows rows;
  ForEachSymbol(image, table, [&](const Symbol& symbol) {
    // readelf names section symbols after their section; the file does not.
    if (symbol.type != STT_SECTION) {
      rows.insert(Row(symbol.address, symbol.size_bytes, symbol.name, versions && symbol.old_version));
    }
    return true;
  });
  return rows;
}

// "   123: 00000000000a1b2c   42 FUNC    GLOBAL DEFAULT   16 malloc@@GLIBC_2.2.5": one line of readelf -sW.
std::optional<std::string> RowOf(const std::string& line, bool versions) {
  uint64_t number, address;
  char size[32], type[16], binding[16], visibility[16], section[16], name[4096] = "";
  const int fields = std::sscanf(line.c_str(), " %" SCNu64 ": %" SCNx64 " %31s %15s %15s %15s %15s %4095s", &number,
                                 &address, size, type, binding, visibility, section, name);
  if (fields < 7 || number == 0 || std::string_view(type) == "SECTION") return std::nullopt;
  const std::string_view text = name;
  const bool defined = std::string_view(section) != "UND";
  const bool old_version = versions && defined && text.find('@') != text.npos && text.find("@@") == text.npos;
  return Row(address, std::stoull(size, nullptr, 0), text.substr(0, text.find('@')), old_version);
}

std::string RunReadelf(const std::string& options, const std::string& path) {
  std::string output;
  FILE* const pipe = ::popen(("LC_ALL=C readelf -W " + options + " '" + path + "' 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return output;
  char buffer[4096];
  while (std::fgets(buffer, sizeof(buffer), pipe) != nullptr) output += buffer;
  ::pclose(pipe);
  return output;
}

Rows TheirRows(const std::string& output, const std::string& table, bool versions) {
  Rows rows;
  bool inside = false;
  base::ForEachPiece(output, '\n', [&](std::string_view line) {
    if (line.starts_with("Symbol table '")) inside = line.find(table) != line.npos;
    const std::optional<std::string> row = inside ? RowOf(std::string(line), versions) : std::nullopt;
    if (row) rows.insert(*row);
  });
  return rows;
}

// The file that this process has mapped under a name that contains `part`.
std::string MappedFile(std::string_view part) {
  std::string found;
  const absl::StatusOr<std::string> maps = sys::ReadFile("/proc/self/maps");
  base::ForEachPiece(*maps, '\n', [&](std::string_view line) {
    const size_t path = line.find('/');
    if (path != line.npos && line.find(part) != line.npos) found = line.substr(path);
  });
  return found;
}

std::string ThisProgram() {
  char path[4096] = "";
  return ::readlink("/proc/self/exe", path, sizeof(path) - 1) > 0 ? path : "";
}

// Without -D readelf prints both tables, each under its heading. In a library '@' is an old version; in a program it
// is also a variable copied from a library, so there the mark is not compared.
void CompareWithReadelf(const std::string& path, bool is_library) {
  INFO(path);
  const absl::StatusOr<std::string> file = sys::ReadFile(path);
  REQUIRE(file.ok());
  const absl::StatusOr<Image> image = Image::Parse(BytesOf(*file));
  REQUIRE(image.ok());
  const std::string output = RunReadelf("-s", path);
  if (output.empty()) SKIP_TEST("readelf is not installed");
  const Rows ours = OurRows(*image, SymbolTable::kDynamic, is_library);
  const Rows theirs = TheirRows(output, ".dynsym", is_library);
  CHECK(ours.size() > 10);
  CHECK(OnlyIn(ours, theirs) == "");
  CHECK(OnlyIn(theirs, ours) == "");
  const Rows our_statics = OurRows(*image, SymbolTable::kStatic, false);
  const Rows their_statics = TheirRows(output, ".symtab", false);
  CHECK(OnlyIn(our_statics, their_statics) == "");
  CHECK(OnlyIn(their_statics, our_statics) == "");
}

TEST_CASE("libc's symbols are those that readelf prints", "[symbols]") {
  const std::string libc = MappedFile("/libc.so");
  if (libc.empty()) SKIP_TEST("no libc.so is mapped here");
  CompareWithReadelf(libc, true);
}

TEST_CASE("this program's symbols are those that readelf prints", "[symbols]") {
  CompareWithReadelf(ThisProgram(), false);
}

// .symtab with four symbols: a function, a weak one, an undefined one, and one whose name lies outside the table.
std::string FileWithSymbols() {
  ElfBuilder builder;
  const std::string names = std::string("\0work\0helper\0puts", 18);
  builder.AddSection(".text", {.sh_type = SHT_PROGBITS, .sh_addr = 0x1000}, std::string(64, '\xc3'));
  builder.AddSection(".symtab", {.sh_type = SHT_SYMTAB, .sh_link = 3, .sh_entsize = sizeof(Elf64_Sym)},
                     SymbolBytes(0, 0, 0, 0) + SymbolBytes(1, STT_FUNC, 1, 0x1000, 16) +
                         SymbolBytes(6, STT_FUNC, 1, 0x1010, 8, STB_WEAK) + SymbolBytes(13, STT_NOTYPE, 0, 0) +
                         SymbolBytes(9999, STT_GNU_IFUNC, 1, 0x1020));
  builder.AddSection(".strtab", {.sh_type = SHT_STRTAB}, names);
  return builder.Build();
}

TEST_CASE("symbols come in order, with every field", "[symbols]") {
  const std::string file = FileWithSymbols();
  std::vector<Symbol> symbols;
  CHECK(ForEachSymbol(*Image::Parse(BytesOf(file)), SymbolTable::kStatic, [&](const Symbol& symbol) {
    symbols.push_back(symbol);
    return true;
  }));
  REQUIRE(symbols.size() == 4);
  CHECK(symbols[0].name == "work");
  CHECK((symbols[0].address == 0x1000 && symbols[0].size_bytes == 16 && symbols[0].type == STT_FUNC));
  CHECK((symbols[1].name == "helper" && symbols[1].binding == STB_WEAK && symbols[1].defined()));
  CHECK((symbols[2].name == "puts" && !symbols[2].defined()));
  CHECK((symbols[3].name == "" && symbols[3].type == STT_GNU_IFUNC));
}

TEST_CASE("a visitor that has seen enough stops the walk", "[symbols]") {
  const std::string file = FileWithSymbols();
  int seen = 0;
  ForEachSymbol(*Image::Parse(BytesOf(file)), SymbolTable::kStatic, [&](const Symbol&) { return ++seen < 2; });
  CHECK(seen == 2);
}

TEST_CASE("a file without the table says so", "[symbols]") {
  const std::string file = FileWithSymbols();
  CHECK_FALSE(ForEachSymbol(*Image::Parse(BytesOf(file)), SymbolTable::kDynamic, [](const Symbol&) { return true; }));
}

TEST_CASE("tables that lie about their place or entries are not walked", "[symbols]") {
  for (const Elf64_Shdr& lie :
       {Elf64_Shdr{.sh_type = SHT_SYMTAB, .sh_size = 1ull << 40, .sh_link = 2, .sh_entsize = 24},
        Elf64_Shdr{.sh_type = SHT_SYMTAB, .sh_link = 2, .sh_entsize = 1},
        Elf64_Shdr{.sh_type = SHT_SYMTAB, .sh_link = 77, .sh_entsize = 24}}) {
    ElfBuilder builder;
    builder.AddSection(".symtab", lie, SymbolBytes(0, 0, 0, 0) + SymbolBytes(1, STT_FUNC, 1, 1));
    builder.AddSection(".strtab", {.sh_type = SHT_STRTAB}, "x");
    const std::string file = builder.Build();
    int seen = 0;
    CHECK_FALSE(
        ForEachSymbol(*Image::Parse(BytesOf(file)), SymbolTable::kStatic, [&](const Symbol&) { return ++seen; }));
    CHECK(seen == 0);
  }
}

}  // namespace
}  // namespace perfkit::elf
