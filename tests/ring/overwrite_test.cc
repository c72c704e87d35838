// Backward rings: the records come newest first, and overwritten ones are counted.
#include <catch2/catch.hpp>
#include <stdexcept>

#include "perfkit/ring_reader.h"
#include "tests/support/record_builder.h"

namespace perfkit {
namespace {

using testing::MemoryRing;

std::string Stamped(uint64_t number, size_t words) {
  testing::RecordBuilder builder;
  for (size_t i = 0; i < words; ++i) builder.U64(number);
  return builder.Finish(RecordType::kSample);
}

std::vector<uint64_t> Stamps(RingReader& reader, DrainStats& stats) {
  std::vector<uint64_t> stamps;
  stats =
      reader.Drain([&](const RawRecord& record) { stamps.push_back(detail::Load<uint64_t>(record.body().data())); });
  return stamps;
}

TEST_CASE("a backward ring gives what came since, newest first, and all of its bytes are accounted for",
          "[ring][overwrite]") {
  constexpr size_t kSize = 1024;
  for (const size_t burst : {1, 3, 10, 40, 100}) {
    MemoryRing ring(kSize);
    RingReader reader = RingReader::Overwrite(&ring.page(), ring.data());
    CHECK(reader.mode() == RingMode::kOverwrite);
    uint64_t number = 0, seen = 0;
    for (int round = 0; round < 200; ++round) {
      const uint64_t before = ring.page().data_head;
      uint64_t reach = 0, fits = 0, total = 0;
      std::vector<uint64_t> sizes;
      for (size_t i = 0; i < burst; ++i) {
        ++number;
        const std::string record = Stamped(number, 1 + number * 7 % 5);
        sizes.push_back(record.size());
        ring.WriteBackward(record);
      }
      for (; fits < burst && reach + sizes[burst - 1 - fits] <= kSize; ++fits) reach += sizes[burst - 1 - fits];
      total = before - ring.page().data_head;
      CHECK(reader.has_records());
      DrainStats stats;
      const std::vector<uint64_t> stamps = Stamps(reader, stats);
      CHECK(!reader.has_records());
      REQUIRE(stamps.size() == fits);
      for (size_t i = 0; i < fits; ++i) CHECK(stamps[i] == number - i);
      CHECK(stats.bytes + stats.overwritten_bytes == total);
      CHECK(stats.malformed == 0);
      seen += stats.bytes + stats.overwritten_bytes;
    }
    CHECK(seen == uint64_t{0} - ring.page().data_head);
    CHECK(ring.page().data_tail == 0);  // never written to
  }
}

TEST_CASE("what a visitor leaves in a backward ring is skipped, and rewinding brings it back", "[ring][overwrite]") {
  MemoryRing ring(1024);
  RingReader reader = RingReader::Overwrite(&ring.page(), ring.data());
  for (uint64_t i = 1; i <= 5; ++i) ring.WriteBackward(Stamped(i, 3));
  const DrainStats two = reader.Drain([](const RawRecord&) {}, 2);
  CHECK(two.records == 2);
  CHECK(two.skipped_bytes == 3 * 32);
  DrainStats stats;
  CHECK(Stamps(reader, stats).empty());
  reader.Rewind();
  CHECK(reader.has_records());
  CHECK(Stamps(reader, stats) == std::vector<uint64_t>{5, 4, 3, 2, 1});
  CHECK(Stamps(reader, stats).empty());
  ring.WriteBackward(Stamped(6, 3));
  CHECK(Stamps(reader, stats) == std::vector<uint64_t>{6});
}

#if defined(__cpp_exceptions) && !defined(PERFKIT_NO_EXCEPTIONS)
TEST_CASE("what a visitor that throws leaves in a backward ring is skipped", "[ring][overwrite]") {
  MemoryRing ring(1024);
  RingReader reader = RingReader::Overwrite(&ring.page(), ring.data());
  for (uint64_t i = 1; i <= 5; ++i) ring.WriteBackward(Stamped(i, 3));
  uint64_t visited = 0;
  const auto third_throws = [&](const RawRecord&) {
    if (++visited == 3) throw std::runtime_error("the third");
  };
  CHECK_THROWS_WITH(reader.Drain(third_throws), "the third");
  CHECK(reader.stats().records == 3);
  CHECK(reader.stats().bytes == 3 * 32);
  CHECK(reader.stats().skipped_bytes == 2 * 32);
  CHECK(!reader.has_records());
  ring.WriteBackward(Stamped(6, 3));
  DrainStats stats;
  CHECK(Stamps(reader, stats) == std::vector<uint64_t>{6});
}
#endif

TEST_CASE("damage in a backward ring is malformed, a cut oldest record is not", "[ring][overwrite]") {
  MemoryRing ring(256);
  RingReader reader = RingReader::Overwrite(&ring.page(), ring.data());
  for (uint64_t i = 1; i <= 20; ++i) ring.WriteBackward(Stamped(i, 4));  // 40 bytes each: 6.4 fit
  DrainStats stats;
  CHECK(Stamps(reader, stats) == std::vector<uint64_t>{20, 19, 18, 17, 16, 15});
  CHECK(stats.overwritten_bytes == 20 * 40 - 6 * 40);
  CHECK(stats.malformed == 0);
  for (uint64_t i = 21; i <= 40; ++i) ring.WriteBackward(Stamped(i, 4));
  ring.Put(ring.page().data_head + 80 + 6, std::string(2, '\0'));  // the third newest has no size
  CHECK(Stamps(reader, stats) == std::vector<uint64_t>{40, 39});
  CHECK(stats.malformed == 1);
  CHECK(stats.bytes + stats.malformed_bytes + stats.overwritten_bytes == 20 * 40);
}

TEST_CASE("a backward ring can be pulled, too", "[ring][overwrite]") {
  MemoryRing ring(256);
  RingReader reader = RingReader::Overwrite(&ring.page(), ring.data());
  for (uint64_t i = 1; i <= 3; ++i) ring.WriteBackward(Stamped(i, 1));
  RawRecord record;
  for (uint64_t i = 3; i >= 2; --i) {
    REQUIRE(reader.Next(record));
    CHECK(detail::Load<uint64_t>(record.body().data()) == i);
  }
  const DrainStats stats = reader.Release();
  CHECK(stats.bytes == 32);
  CHECK(stats.skipped_bytes == 16);
  CHECK(!reader.has_records());
}

}  // namespace
}  // namespace perfkit
