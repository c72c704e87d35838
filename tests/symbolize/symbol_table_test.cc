// The table of names, compared with a naive search over the same symbols.
#include "src/symbolize/symbol_table.h"

#include <catch2/catch.hpp>
#include <random>

namespace perfkit::symbolize {
namespace {

std::string At(const SymbolTable& table, uint64_t address) {
  const std::optional<SymbolTable::Found> found = table.Find(address);
  return found ? std::string(found->name) : "-";
}

TEST_CASE("an address belongs to the function that reaches over it", "[symbol_table]") {
  SymbolTableBuilder builder(1000);
  builder.Add("late", 200, 10, Binding::kGlobal);
  builder.Add("early", 100, 50, Binding::kLocal);
  const SymbolTable table = std::move(builder).Build();
  CHECK(At(table, 99) == "-");
  CHECK(At(table, 100) == "early");
  CHECK(At(table, 149) == "early");
  CHECK(At(table, 150) == "-");
  CHECK(At(table, 209) == "late");
  CHECK(At(table, 210) == "-");
  CHECK(At(table, UINT64_MAX) == "-");
  CHECK(table.Find(205)->begin == 200);
  CHECK(At(SymbolTableBuilder(9).Build(), 0) == "-");
}

// The better of two names for one address, whichever comes first.
std::string Better(std::string_view a, uint64_t a_size, Binding a_binding, std::string_view b, uint64_t b_size,
                   Binding b_binding) {
  std::string names[2];
  for (const bool swapped : {false, true}) {
    SymbolTableBuilder builder(1000);
    if (!swapped) builder.Add(a, 8, a_size, a_binding);
    builder.Add(b, 8, b_size, b_binding);
    if (swapped) builder.Add(a, 8, a_size, a_binding);
    builder.AddBound(16);
    names[swapped] = At(std::move(builder).Build(), 8);
  }
  CHECK(names[0] == names[1]);
  return names[0];
}

TEST_CASE("of several names for one address one is chosen by a rule", "[symbol_table]") {
  using enum Binding;
  CHECK(Better("sized", 1, kWeak, "label", 0, kGlobal) == "sized");
  CHECK(Better("weak_one", 1, kWeak, "local", 1, kLocal) == "local");
  CHECK(Better("local_one", 1, kLocal, "global", 1, kGlobal) == "global");
  CHECK(Better("__libc_malloc", 1, kGlobal, "malloc", 1, kGlobal) == "malloc");
  CHECK(Better("longer", 1, kGlobal, "short", 1, kGlobal) == "longer");
  CHECK(Better("bbb", 1, kGlobal, "aaa", 1, kGlobal) == "aaa");
}

TEST_CASE("aliases of different sizes name the longest of them", "[symbol_table]") {
  SymbolTableBuilder builder(1000);
  builder.Add("whole", 100, 50, Binding::kWeak);
  builder.Add("entry", 100, 10, Binding::kGlobal);
  CHECK(At(std::move(builder).Build(), 140) == "entry");
}

TEST_CASE("of functions inside others the inner one is found, and the outer one goes on after it", "[symbol_table]") {
  SymbolTableBuilder builder(1000);
  builder.Add("outer", 100, 100, Binding::kGlobal);
  builder.Add("middle", 120, 50, Binding::kGlobal);
  builder.Add("inner", 130, 10, Binding::kGlobal);
  builder.Add("over", 190, 20, Binding::kGlobal);
  const SymbolTable table = std::move(builder).Build();
  CHECK(At(table, 119) == "outer");
  CHECK(At(table, 120) == "middle");
  CHECK(At(table, 135) == "inner");
  CHECK(At(table, 140) == "middle");
  CHECK(table.Find(140)->begin == 120);
  CHECK(At(table, 170) == "outer");
  CHECK(table.Find(170)->begin == 100);
  CHECK(At(table, 195) == "over");
  CHECK(At(table, 205) == "over");
  CHECK(At(table, 210) == "-");
}

TEST_CASE("functions of unknown size reach to the next thing, labels inside others name nothing", "[symbol_table]") {
  SymbolTableBuilder builder(1000);
  builder.Add("open", 100, 0, Binding::kLocal);
  builder.Add("next", 150, 20, Binding::kLocal);
  builder.Add("label", 160, 0, Binding::kGlobal);
  builder.Add("last", 180, 0, Binding::kLocal);
  builder.AddBound(200);
  builder.AddBound(50);
  const SymbolTable table = std::move(builder).Build();
  CHECK(At(table, 149) == "open");
  CHECK(At(table, 165) == "next");
  CHECK(At(table, 175) == "-");
  CHECK(At(table, 199) == "last");
  CHECK(At(table, 200) == "-");
}

TEST_CASE("a function without an end anywhere names nothing", "[symbol_table]") {
  SymbolTableBuilder builder(1000);
  builder.Add("endless", 100, 0, Binding::kLocal);
  CHECK(std::move(builder).Build().size() == 0);
}

TEST_CASE("sizes that wrap, empty names and too many bytes of names are left out", "[symbol_table]") {
  SymbolTableBuilder builder(10);
  CHECK(builder.Add("wraps", UINT64_MAX - 4, 8, Binding::kGlobal));
  CHECK(builder.Add("", 4, 8, Binding::kGlobal));
  CHECK(builder.Add("12345", 100, 8, Binding::kGlobal));
  CHECK_FALSE(builder.Add("123456", 200, 8, Binding::kGlobal));
  const SymbolTable table = std::move(builder).Build();
  CHECK(table.size() == 1);
  CHECK(At(table, UINT64_MAX - 2) == "-");
}

struct Plain {
  uint64_t begin, size;
  std::string name;
};

// The function that begins last of those that reach over `address`: what a table must find.
std::string Naively(const std::vector<Plain>& symbols, uint64_t address) {
  const Plain* best = nullptr;
  for (const Plain& symbol : symbols) {
    const bool over = symbol.begin <= address && address - symbol.begin < symbol.size;
    if (over && (best == nullptr || symbol.begin > best->begin)) best = &symbol;
  }
  return best == nullptr ? "-" : best->name;
}

TEST_CASE("random tables find what a walk over all symbols finds", "[symbol_table]") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Plain> symbols;
    std::vector<bool> taken(256);
    for (unsigned i = random() % 40; i > 0; --i) {
      const uint64_t begin = random() % 256;
      if (taken[begin]) continue;  // aliases have a test of their own
      taken[begin] = true;
      symbols.push_back({begin, 1 + random() % (round % 2 == 0 ? 8 : 120), "f" + std::to_string(begin)});
    }
    SymbolTableBuilder builder(1 << 16);
    for (const Plain& symbol : symbols) builder.Add(symbol.name, symbol.begin, symbol.size, Binding::kGlobal);
    const SymbolTable table = std::move(builder).Build();
    CHECK(table.size() <= 2 * symbols.size());
    for (uint64_t address = 0; address < 400; ++address) {
      INFO("round " << round << ", address " << address);
      REQUIRE(At(table, address) == Naively(symbols, address));
    }
  }
}

}  // namespace
}  // namespace perfkit::symbolize
