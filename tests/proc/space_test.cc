// What a process has mapped, against an array with one element an address.
#include "src/proc/space.h"

#include <array>
#include <catch2/catch.hpp>
#include <random>

namespace perfkit::proc {
namespace {

TEST_CASE("a new mapping takes the place of what was there", "[space]") {
  Space space;
  space.Map({100, 200, 0, 1});
  space.Map({140, 160, 1000, 2});
  REQUIRE(space.ranges().size() == 3);
  CHECK(space.Find(99) == nullptr);
  CHECK(space.Find(139)->module == 1);
  CHECK(space.Find(140)->module == 2);
  CHECK(space.Find(159)->offset == 1000);
  REQUIRE(space.Find(160)->module == 1);
  CHECK(space.Find(160)->offset == 60);
  CHECK(space.Find(200) == nullptr);
  space.Map({0, 300, 0, 3});
  CHECK(space.ranges().size() == 1);
  space.Clear();
  CHECK(space.Find(100) == nullptr);
}

TEST_CASE("mappings that end before they begin are passed over", "[space]") {
  Space space;
  space.Map({100, 100, 0, 1});
  space.Map({200, 100, 0, 1});
  space.Unmap(5, 5);
  CHECK(space.ranges().empty());
}

TEST_CASE("a process that maps without end stays bounded", "[space]") {
  Space space;
  for (uint64_t i = 0; i < Space::kMaxRanges + 10; ++i) space.Map({2 * i, 2 * i + 1, 0, 1});
  CHECK(space.ranges().size() == Space::kMaxRanges);
}

TEST_CASE("random mappings are found where they are", "[space]") {
  struct Byte {
    uint32_t module = 0;
    uint64_t offset = 0;
  };
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    Space space;
    std::array<Byte, 300> bytes{};
    for (uint32_t module = 1; module < 40; ++module) {
      const uint64_t begin = random() % 256, end = begin + random() % 64, offset = 1000 * module;
      const bool unmap = random() % 5 == 0;
      if (unmap) {
        space.Unmap(begin, end);
      } else {
        space.Map({begin, end, offset, module});
      }
      for (uint64_t at = begin; at < end && at < bytes.size(); ++at) {
        bytes[at] = unmap ? Byte{} : Byte{module, offset + (at - begin)};
      }
    }
    for (uint64_t at = 0; at < bytes.size(); ++at) {
      const MappedRange* const found = space.Find(at);
      INFO("round " << round << ", address " << at);
      if (at < 256) REQUIRE((found == nullptr ? 0 : found->module) == bytes[at].module);
      if (found != nullptr && at < 256) REQUIRE(found->offset + (at - found->begin) == bytes[at].offset);
    }
  }
}

TEST_CASE("there are never more ranges than the maximum, though each hole makes one more", "[space]") {
  Space space;
  for (uint64_t i = 0; i < Space::kMaxRanges; ++i) space.Map({100 * i, 100 * i + 90, 0, 1});
  const uint64_t last = 100 * (Space::kMaxRanges - 1);
  REQUIRE(space.Find(last) != nullptr);
  space.Unmap(last + 40, last + 50);
  CHECK(space.ranges().size() == Space::kMaxRanges);
  CHECK(space.Find(last + 45) == nullptr);
  CHECK(space.Find(last + 60) != nullptr);
}

}  // namespace
}  // namespace perfkit::proc
