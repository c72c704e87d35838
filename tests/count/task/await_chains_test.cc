// Chains of awaiting tasks: a number for each, also when many threads add them at once.
#include "src/count/task/await_chains.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace perfkit::count {
namespace {

using Added = std::map<uint16_t, std::pair<uint16_t, uint16_t>>;  // by chain: its awaiters and node

// Adds random chains on top of each other.
Added AddChains(AwaitChains& chains, unsigned seed) {
  std::minstd_rand random(seed);
  std::vector<uint16_t> known{AwaitChains::kNone};
  Added added;
  for (int i = 0; i < 2000; ++i) {
    const uint16_t awaiters = known[random() % known.size()];
    const auto node = static_cast<uint16_t>(1 + random() % 5);
    const uint16_t chain = chains.Add({awaiters, node});
    if (chain == AwaitChains::kUnknown) continue;
    added[chain] = {awaiters, node};
    if (known.size() < 40) known.push_back(chain);
  }
  return added;
}

TEST_CASE("await chains: each has one number, on all threads", "[task]") {
  AwaitChains chains(256);
  std::array<Added, 4> added;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < added.size(); ++i) {
    threads.emplace_back([&, i] { added[i] = AddChains(chains, i + 1); });
  }
  for (std::thread& thread : threads) thread.join();
  Added all;
  std::map<std::pair<uint16_t, uint16_t>, uint16_t> numbers;
  for (const Added& some : added) {
    for (const auto& [chain, parts] : some) {
      CHECK(all.try_emplace(chain, parts).first->second == parts);
      CHECK(numbers.try_emplace(parts, chain).first->second == chain);
      const AwaitChains::Link link = chains.link(chain);
      CHECK(std::pair(link.awaiters, link.node) == parts);
    }
  }
  CHECK(all.size() > 100);
}

TEST_CASE("await chains: of a deep one the innermost tasks are known, and others have room", "[task]") {
  AwaitChains chains(16);
  uint16_t deep = AwaitChains::kNone;
  for (int i = 0; i < 2000; ++i) {
    const auto node = static_cast<uint16_t>(1 + i % 2);
    deep = chains.Add({deep, node});
    REQUIRE(deep != AwaitChains::kUnknown);
    CHECK(chains.link(deep).node == node);
  }
  int length = 0;
  while (deep != AwaitChains::kNone && deep != AwaitChains::kUnknown) deep = chains.link(deep).awaiters, ++length;
  CHECK(deep == AwaitChains::kUnknown);
  CHECK(length <= AwaitChains::kMaxLength);
  const uint16_t other = chains.Add({AwaitChains::kNone, 9});
  REQUIRE(other != AwaitChains::kUnknown);
  CHECK(chains.link(other).awaiters == AwaitChains::kNone);
}

TEST_CASE("await chains: if there are too many, the direct awaiter is known, or none", "[task]") {
  AwaitChains chains(4);
  size_t whole = 0, direct = 0, unknown = 0;
  for (uint16_t first = 1; first < 40; ++first) {
    const uint16_t chain = chains.Add({chains.Add({AwaitChains::kNone, first}), 100});
    if (chain == AwaitChains::kUnknown) {
      ++unknown;
    } else {
      CHECK(chains.link(chain).node == 100);
      ++(chains.link(chain).awaiters == AwaitChains::kUnknown ? direct : whole);
    }
  }
  CHECK(whole > 4);
  CHECK(direct + unknown > 0);
}

}  // namespace
}  // namespace perfkit::count
