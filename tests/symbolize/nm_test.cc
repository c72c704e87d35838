// Each function of real files, compared with binutils: nm lists the symbols, addr2line the function at an address.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "tests/support/skip.h"
#include "tests/support/temp_folder.h"
#include "tests/symbolize/support.h"

namespace perfkit {
namespace {

using testing::Compile;
using testing::MapCode;
using testing::RunCommand;
using testing::TempFolder;

constexpr uint64_t kBias = 0x7f12'3400'0000;

struct NmSymbol {
  uint64_t address = 0, size = 0;
  std::string name;
};

// nm's code symbols with a size, "main@@V1|0000000000001139|   T  |    FUNC|000000000000001a|     |.text". Symbols of
// thread-local variables are weak, too, but their values are no addresses.
std::vector<NmSymbol> CodeByNm(const std::string& arguments) {
  std::istringstream lines(RunCommand("nm --defined-only -S --format=sysv " + arguments).output);
  std::vector<NmSymbol> symbols;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields = absl::StrSplit(line, '|');
    if (fields.size() < 6) continue;
    for (std::string& field : fields) absl::StripAsciiWhitespace(&field);
    NmSymbol symbol;
    if (!absl::SimpleHexAtoi(fields[1], &symbol.address) || !absl::SimpleHexAtoi(fields[4], &symbol.size)) continue;
    const bool is_code = fields[2].size() == 1 && std::string("tTwWi").find(fields[2]) != std::string::npos;
    if (!is_code || fields[3] == "TLS" || symbol.size == 0) continue;
    symbol.name = fields[0].substr(0, fields[0].find('@'));
    symbols.push_back(symbol);
  }
  return symbols;
}

// Which names nm has over an address, and where the last of those begins.
struct ByNm {
  std::set<std::string> names;
  uint64_t last_begin = 0;
};
ByNm Over(const std::multimap<uint64_t, NmSymbol>& by_begin, uint64_t address) {
  ByNm over;
  int looked_at = 0;
  for (auto at = by_begin.upper_bound(address); at != by_begin.begin() && looked_at < 200; ++looked_at) {
    --at;
    if (address - at->first >= at->second.size) continue;
    over.names.insert(at->second.name);
    over.last_begin = std::max(over.last_begin, at->first);
  }
  return over;
}

// Begin, middle and end of each function that nm lists.
size_t HoldToNm(const std::string& path, const std::string& nm_arguments, uint64_t bias,
                const std::string& debug_root = "") {
  const std::vector<NmSymbol> symbols = CodeByNm(nm_arguments);
  std::multimap<uint64_t, NmSymbol> by_begin;
  for (const NmSymbol& symbol : symbols) by_begin.emplace(symbol.address, symbol);
  Symbolizer symbolizer({.demangle = false, .debug_root = debug_root});
  MapCode(symbolizer, path, bias);
  size_t wrong = 0;
  for (const NmSymbol& symbol : symbols) {
    for (const uint64_t in : {uint64_t{0}, symbol.size / 2, symbol.size - 1}) {
      const uint64_t address = symbol.address + in;
      const Symbol found = symbolizer.Resolve(1, bias + address);
      const ByNm expected = Over(by_begin, address);
      const bool right =
          expected.names.count(std::string(found.function)) == 1 && found.offset == address - expected.last_begin;
      if (!right && ++wrong < 5) {
        FAIL_CHECK(path << " at " << std::hex << address << ": nm has " << symbol.name << ", found '" << found.function
                        << "' + " << found.offset);
      }
      CHECK(found.module == path);
    }
  }
  CHECK(wrong == 0);
  return symbols.size();
}

std::string SelfPath() {
  char path[4096];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  return size > 0 ? std::string(path, static_cast<size_t>(size)) : "";
}

const char* const kLibc = "/lib/x86_64-linux-gnu/libc.so.6";

TEST_CASE("every exported function of libc has its name", "[symbolize]") {
  if (access(kLibc, R_OK) != 0) SKIP_TEST("no such libc here");
  CHECK(HoldToNm(kLibc, absl::StrFormat("-D %s", kLibc), kBias) > 2000);
}

TEST_CASE("every function of libc has its name where its separate symbols are here", "[symbolize]") {
  constexpr char kRoot[] = "/usr/lib/debug";
  Symbolizer symbolizer({.debug_root = kRoot});
  MapCode(symbolizer, kLibc, kBias);
  symbolizer.Resolve(1, kBias + 0x30000);
  const std::vector<SymbolizedModule> modules = symbolizer.Modules();
  if (modules.empty() || modules[0].debug_file.empty()) SKIP_TEST("libc's separate symbols are not here (libc6-dbg)");
  CHECK(HoldToNm(kLibc, modules[0].debug_file, kBias, kRoot) > 5000);
}

TEST_CASE("every function of this very program has its name", "[symbolize]") {
  CHECK(HoldToNm(SelfPath(), SelfPath(), 0x5555'5555'4000) > 1000);
}

constexpr char kProgram[] =
    "__attribute__((noinline)) static int inner(int x) { return x * 3 + 1; }\n"
    "__attribute__((noinline)) int outer(int x) { return inner(x) + inner(x + 1); }\n"
    "int main(int argc, char** argv) { return outer(argc) + (argv[0] == 0); }\n";

TEST_CASE("static, fixed and lld's programs are laid out in their own ways, and named alike", "[symbolize]") {
  const TempFolder folder;
  int made = 0;
  for (const std::string& compiler :
       {std::string("c++ -O1 -static"), std::string("c++ -O1 -no-pie"), std::string("c++ -O1 -fPIE -pie"),
        std::string("clang -O1 -fuse-ld=lld"), std::string("clang -O1 -no-pie -fuse-ld=lld -Wl,-z,separate-code")}) {
    const std::string path = folder.path() + "/program" + std::to_string(made);
    if (!Compile(compiler, kProgram, path)) continue;
    ++made;
    INFO(compiler);
    CHECK(HoldToNm(path, path, compiler.find("pie") == std::string::npos ? kBias : 0) >= 3);
  }
  if (made == 0) SKIP_TEST("there is no compiler here");
}

TEST_CASE("what addr2line says of each address of a program, we say", "[symbolize]") {
  const TempFolder folder;
  const std::string path = folder.path() + "/program";
  if (!Compile("c++ -O1 -static", kProgram, path)) SKIP_TEST("no static program can be made here");
  const std::vector<NmSymbol> symbols = CodeByNm(path);
  std::map<uint64_t, std::set<std::string>> aliases;
  std::string addresses;
  std::vector<uint64_t> asked;
  for (const NmSymbol& symbol : symbols) aliases[symbol.address].insert(symbol.name);
  for (const NmSymbol& symbol : symbols) {
    asked.push_back(symbol.address + symbol.size / 2);
    addresses += absl::StrFormat("%x\n", asked.back());
  }
  folder.Write("/addresses", addresses);
  std::istringstream said(RunCommand("addr2line -f -e " + path + " < " + folder.path() + "/addresses").output);
  Symbolizer symbolizer({.demangle = false});
  MapCode(symbolizer, path, kBias);
  size_t differ = 0;
  for (const uint64_t address : asked) {
    std::string name, line;
    if (!std::getline(said, name) || !std::getline(said, line)) FAIL("addr2line said too little");
    const Symbol found = symbolizer.Resolve(1, kBias + address);
    differ += aliases[address - found.offset].count(name) == 0 && found.function != name;
  }
  INFO(differ << " of " << asked.size());
  CHECK(asked.size() > 500);
  CHECK(static_cast<double>(differ) <= 0.001 * static_cast<double>(asked.size()));
}

TEST_CASE("stubs that call other modules are named after what they call", "[symbolize]") {
  const TempFolder folder;
  constexpr char kCaller[] =
      "#include <stdlib.h>\n#include <string.h>\nint main(int c, char** v) {"
      " return (int)strlen(v[0]) + abs(atoi(v[c - 1])); }\n";
  int made = 0;
  for (const std::string flags : {"", " -fcf-protection", " -fuse-ld=lld", " -Wl,-z,now -fno-plt", " -Wl,-z,lazy"}) {
    const std::string path = folder.path() + "/caller";
    if (!Compile("clang -O0 -fno-builtin" + flags, kCaller, path)) continue;
    INFO(flags);
    std::istringstream lines(RunCommand("objdump -d --no-show-raw-insn " + path).output);
    Symbolizer symbolizer;
    MapCode(symbolizer, path, kBias);
    for (std::string line; std::getline(lines, line);) {
      // "0000000000001030 <strlen@plt>:"
      uint64_t address = 0;
      char name[64] = "";
      if (sscanf(line.c_str(), "%lx <%63[^>]>:", &address, name) != 2) continue;
      if (!std::string_view(name).ends_with("@plt") || name[0] == '*') continue;
      CHECK(symbolizer.Resolve(1, kBias + address).function == name);
      ++made;
    }
  }
  if (made == 0) SKIP_TEST("there is no clang or no objdump here");
}

}  // namespace
}  // namespace perfkit
