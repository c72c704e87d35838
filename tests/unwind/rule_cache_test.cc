// The cache answers only for the address and generation that it was given.
#include "src/unwind/rule_cache.h"

#include <catch2/catch.hpp>
#include <random>
#include <unordered_map>

namespace perfkit::unwind {
namespace {

Rule RuleOf(uint64_t number) { return {static_cast<int32_t>(number), 0, RuleKind::kSp, 0}; }

TEST_CASE("a rule is found by its address and generation", "[rule_cache]") {
  RuleCache cache;
  CHECK(cache.Find(RuleCache::KeyOf(0, 1)) == nullptr);
  cache.Put(RuleCache::KeyOf(0x401000, 1), RuleOf(1));
  REQUIRE(cache.Find(RuleCache::KeyOf(0x401000, 1)) != nullptr);
  CHECK(*cache.Find(RuleCache::KeyOf(0x401000, 1)) == RuleOf(1));
  CHECK(cache.Find(RuleCache::KeyOf(0x401000, 2)) == nullptr);
  CHECK(cache.Find(RuleCache::KeyOf(0x401001, 1)) == nullptr);
  cache.Clear();
  CHECK(cache.Find(RuleCache::KeyOf(0x401000, 1)) == nullptr);
}

TEST_CASE("addresses that would not fit into a key are not kept", "[rule_cache]") {
  CHECK(RuleCache::CanHold(0x7fff'ffff'ffff));
  CHECK_FALSE(RuleCache::CanHold(uint64_t{1} << 48));
  CHECK_FALSE(RuleCache::CanHold(UINT64_MAX));
  CHECK(RuleCache::KeyOf(0xffff'ffff'ffff, RuleCache::kMostGenerations) == UINT64_MAX);
}

TEST_CASE("whatever was put, nothing else is found", "[rule_cache]") {
  RuleCache cache;
  std::unordered_map<uint64_t, uint64_t> put;
  std::mt19937_64 random(3);
  size_t found = 0;
  for (int i = 0; i < 100000; ++i) {
    const uint64_t key = RuleCache::KeyOf(0x401000 + random() % 8192, 1 + random() % 3);
    if (const Rule* const rule = cache.Find(key)) {
      REQUIRE(*rule == RuleOf(put.at(key)));
      ++found;
    } else {
      put[key] = random() % 1000;
      cache.Put(key, RuleOf(put[key]));
    }
  }
  CHECK(found > 1000);
}

}  // namespace
}  // namespace perfkit::unwind
