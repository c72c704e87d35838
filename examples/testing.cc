// A test that asserts on cost, with Catch2 v2. docs/testing.md explains it.
#define CATCH_CONFIG_MAIN
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "perfkit/testing.h"

using namespace perfkit;
using namespace perfkit::event;

namespace {

std::map<int, int> MakeTable(int size) {
  std::map<int, int> table;
  for (int i = 0; i < size; ++i) table[i] = i * i;
  return table;
}

}  // namespace

TEST_CASE("looking up costs what it should") {
  const std::map<int, int> table = MakeTable(1000);
  const auto m = Measure({kInstructions, kAllocations, kSyscalls}, [&] { return table.find(42)->second; });
  CHECK_THAT(m, Costs(UpTo(400), kInstructions) && Never(kAllocations) && Never(kSyscalls));
}

TEST_CASE("looking up beats a search from the front") {
  const std::map<int, int> table = MakeTable(1000);
  const auto lookup = [&] { return table.find(900)->second; };
  const auto search = [&] {
    return std::find_if(table.begin(), table.end(), [](const auto& entry) { return entry.first == 900; })->second;
  };
  CHECK_THAT(Compare({kInstructions}, lookup, search), UsesUpTo(0.1, kInstructions));
}

TEST_CASE("looking up grows with the logarithm") {
  std::map<uint64_t, std::map<int, int>> tables;
  for (const uint64_t n : {64u, 256u, 1024u, 4096u}) tables[n] = MakeTable(static_cast<int>(n));
  // Many keys: one alone may lie near the root.
  const auto lookup = [&](uint64_t n) {
    int sum = 0;
    for (int i = 0; i < 32; ++i) sum += tables[n].find(static_cast<int>(n) * i / 32)->second;
    return sum;
  };
  CHECK_THAT(Scaling({kInstructions}, lookup, {64, 256, 1024, 4096}), GrowsNoFasterThan(kLogN, kInstructions));
}
