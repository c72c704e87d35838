// The search under every table, against the standard library's.
#include "src/base/last_at.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <vector>

namespace perfkit::base {
namespace {

TEST_CASE("the last that does not begin after an address is found, in tables of every size") {
  std::mt19937_64 random(7);
  for (size_t count = 0; count <= 70; ++count) {
    std::vector<uint64_t> begins(count);
    for (uint64_t& begin : begins) begin = random() % 200;
    if (count > 3) begins[1] = UINT64_MAX, begins[2] = 0;
    std::sort(begins.begin(), begins.end());
    for (uint64_t address = 0; address <= 201; ++address) {
      const auto after = std::upper_bound(begins.begin(), begins.end(), address);
      const uint64_t* const found = LastAt(begins.data(), count, address, [](uint64_t begin) { return begin; });
      if (after == begins.begin()) {
        CHECK(found == nullptr);
      } else {
        CHECK(found == &*std::prev(after));
      }
    }
    if (count > 3) {
      CHECK(LastAt(begins.data(), count, UINT64_MAX, [](uint64_t begin) { return begin; }) == &begins.back());
    }
  }
}

}  // namespace
}  // namespace perfkit::base
