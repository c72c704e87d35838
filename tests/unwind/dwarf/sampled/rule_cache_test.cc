// The cache answers only for the address and generation that it was given.
#include "src/unwind/dwarf/sampled/rule_cache.h"

#include <catch2/catch.hpp>
#include <memory>
#include <random>
#include <unordered_map>

namespace perfkit::unwind {
namespace {

Rule RuleFromRow(uint64_t number) { return {static_cast<int32_t>(number), 0, RuleKind::kSp, 0}; }

TEST_CASE("a rule is found by its address and generation", "[rule_cache]") {
  RuleCache cache;
  CHECK(cache.Find(RuleCache::KeyOf(0, 1)) == nullptr);
  cache.Put(RuleCache::KeyOf(0x401000, 1), RuleFromRow(1));
  REQUIRE(cache.Find(RuleCache::KeyOf(0x401000, 1)) != nullptr);
  CHECK(*cache.Find(RuleCache::KeyOf(0x401000, 1)) == RuleFromRow(1));
  CHECK(cache.Find(RuleCache::KeyOf(0x401000, 2)) == nullptr);
  CHECK(cache.Find(RuleCache::KeyOf(0x401001, 1)) == nullptr);
  cache.Clear();
  CHECK(cache.Find(RuleCache::KeyOf(0x401000, 1)) == nullptr);
}

TEST_CASE("addresses that would not fit into a key are not kept", "[rule_cache]") {
  CHECK(RuleCache::CanHold(0x7fff'ffff'ffff));
  CHECK_FALSE(RuleCache::CanHold(uint64_t{1} << 48));
  CHECK_FALSE(RuleCache::CanHold(UINT64_MAX));
  CHECK(RuleCache::KeyOf(0xffff'ffff'ffff, RuleCache::kMaxGenerations) == UINT64_MAX);
}

TEST_CASE("whatever was put, nothing else is found", "[rule_cache]") {
  RuleCache cache;
  std::unordered_map<uint64_t, uint64_t> put;
  std::mt19937_64 random(3);
  size_t found = 0;
  for (int i = 0; i < 100000; ++i) {
    const uint64_t key = RuleCache::KeyOf(0x401000 + random() % 8192, 1 + random() % 3);
    if (const Rule* const rule = cache.Find(key)) {
      REQUIRE(*rule == RuleFromRow(put.at(key)));
      ++found;
    } else {
      put[key] = random() % 1000;
      cache.Put(key, RuleFromRow(put[key]));
    }
  }
  CHECK(found > 1000);
}

TEST_CASE("two of one set are kept, and the older one goes for a third", "[rule_cache]") {
  // The test does not know which keys share a set. Each key is found right after its Put, and so is the one before it.
  const auto cache = std::make_unique<RuleCache>();
  std::unordered_map<uint64_t, uint64_t> last_of_set;
  size_t third = 0;
  for (uint64_t i = 2; i < 20000; ++i) {
    const auto key = [](uint64_t number) { return RuleCache::KeyOf(0x401000 + number * 5, 1); };
    cache->Put(key(i), RuleFromRow(i));
    RuleCache::Slot slot = 0;
    REQUIRE(cache->Find(key(i), slot) != nullptr);
    if (const auto last = last_of_set.find(slot / 2); last != last_of_set.end()) {
      REQUIRE(cache->Find(key(last->second)) != nullptr);
    }
    last_of_set[slot / 2] = i;
    for (const uint64_t known : {i, i - 1}) {
      if (known < 2) continue;
      const Rule* const rule = cache->Find(key(known));
      REQUIRE(rule != nullptr);
      REQUIRE(*rule == RuleFromRow(known));
    }
    third += cache->Find(key(i / 2)) == nullptr;
  }
  CHECK(third > 1000);
}

TEST_CASE("the caller that is asked for is found, whatever the last call was", "[rule_cache]") {
  const auto cache = std::make_unique<RuleCache>();
  std::unordered_map<uint64_t, uint64_t> put;
  std::mt19937_64 random(7);
  RuleCache::Slot slot = 0;
  size_t found = 0;
  for (int i = 0; i < 100000; ++i) {
    // Few callers, so that predictions are right, wrong, and of replaced entries.
    const uint64_t key = RuleCache::KeyOf(0x401000 + random() % 4 + (random() % 64 == 0 ? random() % 8192 : 0), 1);
    const RuleCache::Slot before = slot;
    const Rule* const plain = cache->Find(key);
    const Rule* const rule = cache->FindCaller(key, slot);
    REQUIRE(rule == plain);
    if (rule != nullptr) {
      REQUIRE(*rule == RuleFromRow(put.at(key)));
      RuleCache::Slot at = 0;
      REQUIRE(cache->Find(key, at) == rule);
      REQUIRE(slot == at);
      ++found;
    } else {
      REQUIRE(slot == before);
      put[key] = random() % 1000;
      cache->Put(key, RuleFromRow(put[key]));
    }
  }
  CHECK(found > 90000);
}

}  // namespace
}  // namespace perfkit::unwind
