// How far apart names are, and which are suggested.
#include "src/base/nearest.h"

#include <catch2/catch.hpp>

namespace perfkit::base {
namespace {

TEST_CASE("nearest: an insertion, a deletion, a replacement and a swap of neighbours are one edit each") {
  const std::string name = "branch-misses";
  CHECK(EditDistance(name, name) == 0);
  for (size_t i = 0; i + 1 < name.size(); ++i) {
    std::string inserted = name, deleted = name, replaced = name, swapped = name;
    inserted.insert(i, 1, '#');
    deleted.erase(i, 1);
    replaced[i] = '#';
    std::swap(swapped[i], swapped[i + 1]);
    for (const std::string& other : {inserted, deleted, replaced, swapped}) {
      INFO(other);
      const size_t edits = other == name ? 0 : 1;
      CHECK(EditDistance(name, other) == edits);
      CHECK(EditDistance(other, name) == edits);
    }
  }
  CHECK(EditDistance("Cycles", "cYCLES") == 0);
  CHECK(EditDistance("", "abc") == 3);
}

TEST_CASE("nearest: the nearest come first, ties in their order, and far ones not at all") {
  const std::vector<std::string> known = {"cycles", "bus-cycles", "ref-cycles", "faults", "cyclos"};
  CHECK(Nearest("cycels", known) == std::vector<std::string>{"cycles", "cyclos"});
  CHECK(Nearest("cycles", known, 2) == std::vector<std::string>{"cycles", "cyclos"});
  CHECK(Nearest("cycle", known) == std::vector<std::string>{"cycles", "cyclos", "bus-cycles"});
  CHECK(Nearest("task-clock", known).empty());
}

TEST_CASE("nearest: a long text is near to no short name") {
  const std::vector<std::string> known = {"cycles", "faults"};
  for (const size_t length : {100, 128, 387, 10'000}) CHECK(Nearest(std::string(length, 'x'), known).empty());
}

}  // namespace
}  // namespace perfkit::base
