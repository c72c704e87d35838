// PairIndex holds what an std::map holds.
#include "src/profile/pair_index.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

namespace perfkit::profile {
namespace {

TEST_CASE("a pair index has each pair once, with its first value", "[profile]") {
  std::mt19937_64 random(7);
  PairIndex index;
  std::map<std::pair<uint64_t, uint64_t>, uint32_t> expected;
  size_t wrong = 0;
  for (uint32_t i = 0; i < 20'000; ++i) {
    const PairKey key{random() % 100 == 0 ? UINT64_MAX : random() % 200, random() % 50};
    const auto [entry, is_new] = index.try_emplace(key, i);
    const auto [known, was_new] = expected.try_emplace({key.a, key.b}, i);
    wrong += is_new != was_new || entry->second != known->second || entry->first != key;
  }
  CHECK(wrong == 0);
  CHECK(expected.size() > 5'000);
}

}  // namespace
}  // namespace perfkit::profile
