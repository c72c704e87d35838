// Many rings as one: the order is that of a stable sort, records beyond the horizon stay, late ones are counted.
#include "src/ring/time_merge.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <deque>
#include <functional>
#include <random>

#include "perfkit/sample.h"
#include "tests/support/record_builder.h"

namespace perfkit::ring {
namespace {

using testing::MemoryRing;

struct Stamp {
  uint64_t time;
  size_t ring;
  uint64_t number;
  friend bool operator==(const Stamp&, const Stamp&) = default;
};

// Rings whose records hold a time and a number. Time 0 stands for none.
class Rings {
 public:
  explicit Rings(size_t count, size_t size = 1 << 14) {
    for (size_t i = 0; i < count; ++i) {
      rings_.emplace_back(size, i * 8);
      readers_.emplace_back(&rings_.back().page(), rings_.back().data());
      merge_.Add(readers_.back());
    }
  }

  bool Write(const Stamp& stamp, size_t padding = 0) {
    testing::RecordBuilder builder;
    builder.U64(stamp.time).U64(stamp.number);
    for (size_t i = 0; i < padding; ++i) builder.U64(0);
    return rings_[stamp.ring].Write(builder.Finish(RecordType::kSample));
  }
  std::vector<Stamp> Drain(
      uint64_t horizon, MergeStats* stats = nullptr, const std::function<void(size_t ring)>& look = [](size_t) {}) {
    std::vector<Stamp> out;
    const auto time_of = [](const RawRecord& record, size_t) -> std::optional<uint64_t> {
      const uint64_t time = detail::Load<uint64_t>(record.data + 8);
      return time == 0 ? std::nullopt : std::optional(time);
    };
    const MergeStats got = merge_.Drain(horizon, time_of, [&](const RawRecord& record, size_t ring) {
      look(ring);
      out.push_back({detail::Load<uint64_t>(record.data + 8), ring, detail::Load<uint64_t>(record.data + 16)});
    });
    CHECK(got.rings.records == out.size());
    if (stats != nullptr) *stats = got;
    return out;
  }
  MemoryRing& ring(size_t i) { return rings_[i]; }

 private:
  std::deque<MemoryRing> rings_;
  std::deque<RingReader> readers_;
  TimeMerge merge_;
};

TEST_CASE("merging is sorting by time, within a ring in its own order", "[merge]") {
  std::mt19937_64 random(1);
  for (const size_t count : {1, 2, 3, 5, 8, 13, 64, 100}) {
    Rings rings(count);
    std::vector<Stamp> written;
    std::vector<uint64_t> now(count, 1);
    for (uint64_t number = 0; number < 50 * count; ++number) {
      const size_t ring = random() % count;
      now[ring] += random() % 20;
      written.push_back({now[ring], ring, number});
      REQUIRE(rings.Write(written.back(), random() % 5));
    }
    MergeStats stats;
    const std::vector<Stamp> read = rings.Drain(UINT64_MAX, &stats);
    INFO(count << " rings");
    CHECK(stats.late == 0);
    CHECK(!stats.held);
    REQUIRE(read.size() == written.size());
    CHECK(std::is_sorted(read.begin(), read.end(), [](const Stamp& a, const Stamp& b) { return a.time < b.time; }));
    for (size_t ring = 0; ring < count; ++ring) {
      std::vector<Stamp> in, out;
      const auto mine = [&](const Stamp& stamp) { return stamp.ring == ring; };
      std::copy_if(written.begin(), written.end(), std::back_inserter(in), mine);
      std::copy_if(read.begin(), read.end(), std::back_inserter(out), mine);
      CHECK(in == out);
      CHECK(rings.ring(ring).page().data_tail == rings.ring(ring).page().data_head);
    }
  }
}

TEST_CASE("what is beyond the horizon waits in its ring", "[merge]") {
  Rings rings(3);
  for (uint64_t i = 1; i <= 30; ++i) REQUIRE(rings.Write({i * 10, i % 3, i}));
  MergeStats stats;
  std::vector<Stamp> all;
  for (const uint64_t horizon : {5, 95, 95, 100, 255}) {
    const std::vector<Stamp> some = rings.Drain(horizon, &stats);
    CHECK(stats.held);
    for (const Stamp& stamp : some) CHECK(stamp.time <= horizon);
    all.insert(all.end(), some.begin(), some.end());
    CHECK(all.size() == horizon / 10);
  }
  const std::vector<Stamp> rest = rings.Drain(UINT64_MAX, &stats);
  all.insert(all.end(), rest.begin(), rest.end());
  CHECK(!stats.held);
  REQUIRE(all.size() == 30);
  for (uint64_t i = 0; i < 30; ++i) CHECK(all[i].number == i + 1);
}

TEST_CASE("a record that appears after a later one was given out is late, and given out", "[merge]") {
  Rings rings(2);
  REQUIRE(rings.Write({100, 0, 1}));
  CHECK(rings.Drain(UINT64_MAX).size() == 1);
  REQUIRE(rings.Write({99, 1, 2}));
  REQUIRE(rings.Write({100, 1, 3}));
  MergeStats stats;
  CHECK(rings.Drain(UINT64_MAX, &stats).size() == 2);
  CHECK(stats.late == 1);
}

TEST_CASE("records without a time follow the one before them; times at the end of time are times", "[merge]") {
  Rings rings(2);
  REQUIRE(rings.Write({50, 0, 1}));
  REQUIRE(rings.Write({0, 0, 2}));
  REQUIRE(rings.Write({UINT64_MAX, 0, 3}));
  REQUIRE(rings.Write({40, 1, 4}));
  REQUIRE(rings.Write({60, 1, 5}));
  std::vector<uint64_t> order;
  for (const Stamp& stamp : rings.Drain(UINT64_MAX)) order.push_back(stamp.number);
  CHECK(order == std::vector<uint64_t>{4, 1, 2, 5, 3});
}

// The merge keeps times as the distance from an origin, in fewer bits than a time has.
TEST_CASE("times may be as far from each other as numbers can be", "[merge]") {
  std::mt19937_64 random(3);
  for (const uint64_t step : {uint64_t{1} << 20, uint64_t{1} << 42, uint64_t{1} << 44, uint64_t{1} << 58}) {
    Rings rings(5);
    std::vector<uint64_t> written, read;
    for (size_t ring = 0; ring < 5; ++ring) {
      std::vector<uint64_t> times;
      for (int i = 0; i < 30; ++i) times.push_back(1 + random() % (step * 32 - 1));
      if (ring == 0) times.push_back(UINT64_MAX);
      std::sort(times.begin(), times.end());
      for (const uint64_t time : times) REQUIRE(rings.Write({time, ring, 0}));
      written.insert(written.end(), times.begin(), times.end());
    }
    std::sort(written.begin(), written.end());
    const uint64_t middle = written[written.size() / 2];
    MergeStats stats;
    for (const uint64_t horizon : {middle, UINT64_MAX}) {
      for (const Stamp& stamp : rings.Drain(horizon, &stats)) read.push_back(stamp.time);
      CHECK(stats.late == 0);
      CHECK(read.back() == std::min(horizon, written.back()));
    }
    CHECK(read == written);
  }
}

TEST_CASE("a ring in disorder, by any distance, loses nothing and is counted as late", "[merge]") {
  Rings rings(2);
  const uint64_t far = uint64_t{1} << 60;
  for (const uint64_t time : {far, uint64_t{5}, far + 1, uint64_t{6}}) REQUIRE(rings.Write({time, 0, 0}));
  for (const uint64_t time : {uint64_t{4}, far + 2}) REQUIRE(rings.Write({time, 1, 0}));
  std::vector<uint64_t> read;
  MergeStats stats;
  for (const Stamp& stamp : rings.Drain(UINT64_MAX, &stats)) read.push_back(stamp.time);
  CHECK(read == std::vector<uint64_t>{4, far, 5, far + 1, 6, far + 2});
  CHECK(stats.late == 2);
}

TEST_CASE("a record without a time, first of a drain, follows the one that was given out last", "[merge]") {
  Rings rings(2);
  REQUIRE(rings.Write({50, 0, 1}));
  REQUIRE(rings.Write({70, 0, 2}));
  REQUIRE(rings.Write({0, 0, 3}));
  REQUIRE(rings.Write({90, 0, 4}));
  CHECK(rings.Drain(60).size() == 1);
  CHECK(rings.Drain(80).size() == 2);
  REQUIRE(rings.Write({80, 1, 5}));
  REQUIRE(rings.Write({0, 0, 6}));
  std::vector<uint64_t> order;
  for (const Stamp& stamp : rings.Drain(UINT64_MAX)) order.push_back(stamp.number);
  CHECK(order == std::vector<uint64_t>{5, 4, 6});
  REQUIRE(rings.Write({85, 1, 7}));
  REQUIRE(rings.Write({0, 0, 8}));
  order.clear();
  for (const Stamp& stamp : rings.Drain(UINT64_MAX)) order.push_back(stamp.number);
  CHECK(order == std::vector<uint64_t>{7, 8});
}

TEST_CASE("room is given back meanwhile, but never that of what was not given out", "[merge]") {
  constexpr uint64_t kRecord = 24;
  Rings rings(2);
  uint64_t given[2] = {}, last[2] = {}, start[2] = {};
  for (const size_t ring : {0, 1}) start[ring] = rings.ring(ring).page().data_tail;
  for (uint64_t i = 1; i <= 1000; ++i) REQUIRE(rings.Write({i, i * i % 3 == 0, i}));
  const auto look = [&](size_t visited) {
    for (const size_t ring : {0, 1}) {
      const uint64_t back = (rings.ring(ring).page().data_tail - start[ring]) / kRecord;
      // The one that is being visited is still there.
      REQUIRE(back <= given[ring]);
      last[ring] = std::max(last[ring], given[ring] - back);
    }
    ++given[visited];
  };
  CHECK(rings.Drain(900, nullptr, look).size() == 900);
  for (const size_t ring : {0, 1}) {
    CHECK(last[ring] < 400);
    CHECK(rings.ring(ring).page().data_tail - start[ring] == given[ring] * kRecord);
  }
}

TEST_CASE("a damaged ring does not stop the others", "[merge][corrupt]") {
  Rings rings(3);
  for (uint64_t i = 1; i <= 30; ++i) REQUIRE(rings.Write({i, i % 3, i}));
  rings.ring(1).Put(8 + 24 + 6, std::string(2, '\0'));
  MergeStats stats;
  CHECK(rings.Drain(UINT64_MAX, &stats).size() == 21);
  CHECK(stats.rings.malformed == 1);
  CHECK(stats.rings.malformed_bytes == 9 * 24);
  REQUIRE(rings.Write({31, 1, 31}));
  CHECK(rings.Drain(UINT64_MAX).size() == 1);
}

TEST_CASE("a merge of nothing, and of rings that are empty", "[merge]") {
  TimeMerge none;
  const auto time_of = [](const RawRecord&, size_t) { return std::optional<uint64_t>(1); };
  CHECK(none.Drain(UINT64_MAX, time_of, [](const RawRecord&, size_t) {}).rings.records == 0);
  Rings rings(5);
  CHECK(rings.Drain(UINT64_MAX).empty());
  REQUIRE(rings.Write({1, 4, 1}));
  CHECK(rings.Drain(UINT64_MAX).size() == 1);
}

TEST_CASE("a long merge gives room back while it runs", "[merge]") {
  Rings rings(2, 1 << 13);
  uint64_t number = 0;
  while (rings.Write({1 + number, 0, number})) ++number;
  uint64_t given = 0, held_max = 0;
  const uint64_t start = rings.ring(0).page().data_tail;
  TimeMerge merge;
  RingReader reader(&rings.ring(0).page(), rings.ring(0).data());
  merge.Add(reader);
  merge.Drain(
      UINT64_MAX, [](const RawRecord&, size_t) { return std::optional<uint64_t>(1); },
      [&](const RawRecord& record, size_t) {
        held_max = std::max(held_max, start + given - rings.ring(0).page().data_tail);
        CHECK(rings.ring(0).page().data_tail <= start + given);
        given += record.size;
      });
  CHECK(given > 8000);
  CHECK(held_max <= 65 * 24);
}

}  // namespace
}  // namespace perfkit::ring
