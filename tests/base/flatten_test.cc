// Ranges that lie over each other, held to a search that looks at all of them.
#include "src/base/flatten.h"

#include <catch2/catch.hpp>
#include <random>

namespace perfkit::base {
namespace {

TEST_CASE("what begins last is on top, and what is under it comes back after it", "[flatten]") {
  FlatRanges ranges;
  ranges.Add(10, 50, 0);
  ranges.Add(20, 40, 1);
  ranges.Add(30, 35, 2);
  ranges.Add(60, 60, 3);  // empty
  ranges.Add(70, 65, 4);  // ends before it begins
  ranges.Build();
  const std::pair<uint64_t, uint32_t> expected[] = {{9, FlatRanges::kNone},
                                                    {10, 0},
                                                    {19, 0},
                                                    {20, 1},
                                                    {29, 1},
                                                    {30, 2},
                                                    {34, 2},
                                                    {35, 1},
                                                    {39, 1},
                                                    {40, 0},
                                                    {49, 0},
                                                    {50, FlatRanges::kNone},
                                                    {60, FlatRanges::kNone},
                                                    {67, FlatRanges::kNone}};
  for (const auto& [address, id] : expected) CHECK(ranges.Find(address) == id);
  CHECK(ranges.ranges().size() == 5);
}

TEST_CASE("of ranges that begin alike the shorter one is on top, of equal ones the later", "[flatten]") {
  FlatRanges ranges;
  ranges.Add(10, 20, 5);
  ranges.Add(10, 30, 6);
  ranges.Add(40, 50, 7);
  ranges.Add(40, 50, 8);
  ranges.Build();
  CHECK(ranges.Find(10) == 5);
  CHECK(ranges.Find(20) == 6);
  CHECK(ranges.Find(45) == 8);
  FlatRanges least;
  least.Add(40, 50, 7);
  least.Add(40, 50, 8);
  least.Build(FlatRanges::Ties::kSmallest);
  CHECK(least.Find(45) == 7);
}

TEST_CASE("no ranges hold nothing, and the last address is none's end", "[flatten]") {
  FlatRanges none, last;
  none.Build();
  CHECK(none.Find(0) == FlatRanges::kNone);
  last.Add(~uint64_t{0} - 1, ~uint64_t{0}, 1);
  last.Build();
  CHECK(last.Find(~uint64_t{0} - 1) == 1);
  CHECK(last.Find(~uint64_t{0}) == FlatRanges::kNone);
}

TEST_CASE("random ranges are found as a look at all of them finds them", "[flatten]") {
  std::mt19937_64 random(11);
  for (int round = 0; round < 300; ++round) {
    std::vector<FlatRanges::Range> all;
    FlatRanges flat;
    for (uint32_t id = 0, count = 1 + random() % 20; id < count; ++id) {
      const uint64_t begin = random() % 100;
      all.push_back({begin, begin + 1 + random() % 40, id});
      flat.Add(all.back().begin, all.back().end, id);
    }
    flat.Build();
    for (uint64_t address = 0; address < 150; ++address) {
      const FlatRanges::Range* best = nullptr;
      for (const FlatRanges::Range& range : all) {
        if (address < range.begin || address >= range.end) continue;
        const bool better =
            best == nullptr || range.begin > best->begin || (range.begin == best->begin && range.end <= best->end);
        if (better) best = &range;
      }
      CHECK(flat.Find(address) == (best == nullptr ? FlatRanges::kNone : best->id));
    }
  }
}

}  // namespace
}  // namespace perfkit::base
