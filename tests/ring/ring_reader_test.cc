// Rings in ordinary memory: all wraps, both directions, both ways to read, and bytes that are not records.
#include "perfkit/ring_reader.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "tests/support/record_builder.h"

namespace perfkit {
namespace {

using testing::AsRecord;
using testing::MemoryRing;
using testing::RecordBuilder;

// A record of `words` words after its header, which count on from `first`.
std::string Numbered(size_t words, uint64_t first = 0) {
  RecordBuilder builder;
  for (size_t i = 0; i < words; ++i) builder.U64(first + i);
  return builder.Finish(RecordType::kSample, 2);
}

std::vector<std::string> DrainAll(RingReader& reader, DrainStats* stats = nullptr) {
  std::vector<std::string> records;
  const DrainStats drained =
      reader.Drain([&](const RawRecord& record) { records.push_back(testing::Text(record.bytes())); });
  CHECK(drained.records == records.size());
  if (stats != nullptr) *stats = drained;
  return records;
}

TEST_CASE("a record survives every wrap offset, also where positions pass 2^64", "[ring]") {
  constexpr size_t kSize = 256;
  for (const uint64_t base : {uint64_t{0}, uint64_t{1} << 32, uint64_t{0} - 2 * kSize}) {
    for (size_t words = 0; words < kSize / 8; ++words) {
      for (uint64_t offset = 0; offset < kSize; offset += 8) {
        MemoryRing ring(kSize, base + offset);
        RingReader reader(&ring.page(), ring.data());
        const std::string record = Numbered(words, offset);
        REQUIRE(ring.Write(record));
        CHECK(reader.has_records());
        const std::vector<std::string> read = DrainAll(reader);
        REQUIRE(read.size() == 1);
        CHECK(read[0] == record);
        CHECK(ring.page().data_tail == ring.page().data_head);
        CHECK(!reader.has_records());
        CHECK(DrainAll(reader).empty());
      }
    }
  }
}

TEST_CASE("a record says what its header says", "[ring]") {
  MemoryRing ring(64);
  RingReader reader(&ring.page(), ring.data());
  REQUIRE(ring.Write(RecordBuilder().U64(7).Finish(0xfedcba98u, 0x4321)));
  const DrainStats stats = reader.Drain([&](const RawRecord& record) {
    CHECK(record.type == 0xfedcba98u);
    CHECK(record.misc == 0x4321);
    CHECK(record.size == 16);
    CHECK(record.bytes().size() == 16);
    CHECK(record.body().size() == 8);
    CHECK(record.body().data() == ring.data().data() + 8);
  });
  CHECK(stats.records == 1);
  CHECK(stats.bytes == 16);
  CHECK(reader.stats().bytes == 16);
}

TEST_CASE("the largest record that there is, wrapped", "[ring]") {
  constexpr size_t kSize = 1 << 17;
  MemoryRing ring(kSize, kSize - 4096);
  RingReader reader(&ring.page(), ring.data());
  const std::string record = Numbered(8190);
  REQUIRE(record.size() == 65528);
  REQUIRE(ring.Write(record));
  const std::vector<std::string> read = DrainAll(reader);
  REQUIRE(read.size() == 1);
  CHECK(read[0] == record);
}

TEST_CASE("a drain may end early: by number, or by a visitor that has had enough", "[ring]") {
  MemoryRing ring(1024);
  RingReader reader(&ring.page(), ring.data());
  for (uint64_t i = 0; i < 10; ++i) REQUIRE(ring.Write(Numbered(1, i)));
  uint64_t next = 0;
  const auto in_turn = [&](const RawRecord& record) { CHECK(detail::Load<uint64_t>(record.body().data()) == next++); };
  CHECK(reader.Drain(in_turn, 3).records == 3);
  CHECK(ring.page().data_tail == 3 * 16);
  CHECK(reader.Drain(in_turn, 0).records == 0);
  const DrainStats two = reader.Drain([&](const RawRecord& record) {
    in_turn(record);
    return next < 5;
  });
  CHECK(two.records == 2);
  CHECK(two.bytes == 32);
  CHECK(reader.Drain(in_turn).records == 5);
  CHECK(reader.stats().records == 10);
}

#if defined(__cpp_exceptions) && !defined(PERFKIT_NO_EXCEPTIONS)
TEST_CASE("after a visitor that throws, the next drain begins with the next record", "[ring]") {
  MemoryRing ring(1024);
  RingReader reader(&ring.page(), ring.data());
  for (uint64_t i = 0; i < 10; ++i) REQUIRE(ring.Write(Numbered(1, i)));
  uint64_t next = 0;
  const auto third_throws = [&](const RawRecord& record) {
    CHECK(detail::Load<uint64_t>(record.body().data()) == next++);
    if (next == 3) throw std::runtime_error("the third");
  };
  CHECK_THROWS_WITH(reader.Drain(third_throws), "the third");
  CHECK(ring.page().data_tail == 3 * 16);
  CHECK(reader.stats().records == 3);
  CHECK(reader.stats().bytes == 3 * 16);
  CHECK(reader.Drain(third_throws).records == 7);
  CHECK(next == 10);
  CHECK(ring.page().data_tail == 10 * 16);
  CHECK(reader.stats().records == 10);
  CHECK(reader.stats().malformed == 0);
}
#endif

TEST_CASE("a long drain gives room back before its end", "[ring]") {
  MemoryRing ring(1024);
  RingReader reader(&ring.page(), ring.data());
  while (ring.Write(Numbered(3))) continue;
  uint64_t max_held = 0, at = 0;
  reader.Drain([&](const RawRecord& record) {
    max_held = std::max(max_held, at - ring.page().data_tail);
    CHECK(ring.page().data_tail <= at);  // never the room of what is still read
    at += record.size;
  });
  CHECK(max_held <= 256 + 32);
  CHECK(ring.page().data_tail == 1024);
}

TEST_CASE("records pulled one by one stay until they are released", "[ring]") {
  constexpr size_t kSize = 256;
  for (uint64_t offset = 0; offset < kSize; offset += 8) {
    MemoryRing ring(kSize, offset);
    RingReader reader(&ring.page(), ring.data());
    std::vector<std::string> written;
    for (uint64_t i = 0; i < 6; ++i) {
      written.push_back(Numbered(1 + i % 4, i));
      REQUIRE(ring.Write(written.back()));
    }
    std::vector<RawRecord> held(written.size());
    for (RawRecord& record : held) REQUIRE(reader.Next(record));
    RawRecord none;
    CHECK(!reader.Next(none));
    CHECK(ring.page().data_tail == offset);
    for (size_t i = 0; i < held.size(); ++i) CHECK(testing::Text(held[i].bytes()) == written[i]);
    CHECK(reader.Release().records == 6);
    CHECK(ring.page().data_tail == ring.page().data_head);
    CHECK(reader.Release().records == 0);
  }
}

TEST_CASE("what was pulled can be put back, and room can be given back within a batch", "[ring]") {
  MemoryRing ring(256);
  RingReader reader(&ring.page(), ring.data());
  for (uint64_t i = 0; i < 4; ++i) REQUIRE(ring.Write(Numbered(1, i)));
  RawRecord record;
  REQUIRE(reader.Next(record));
  REQUIRE(reader.Next(record));
  reader.Unread(record);
  reader.ReleaseRead();
  CHECK(ring.page().data_tail == 16);
  REQUIRE(reader.Next(record));
  CHECK(detail::Load<uint64_t>(record.body().data()) == 1);
  reader.Unread(record);
  CHECK(reader.Release().records == 1);
  CHECK(ring.page().data_tail == 16);
  CHECK(reader.Drain([](const RawRecord&) {}).records == 3);
  CHECK(reader.stats().records == 4);
  CHECK(reader.stats().bytes == 64);
}

TEST_CASE("what is put back is the next one, wherever the ring turns", "[ring]") {
  for (uint64_t offset = 0; offset < 256; offset += 8) {
    MemoryRing ring(256, offset);
    RingReader reader(&ring.page(), ring.data());
    for (uint64_t i = 0; i < 8; ++i) REQUIRE(ring.Write(Numbered(2, i)));
    RawRecord record;
    for (uint64_t i = 0; i < 8; ++i) {
      for (int again = 0; again < 2; ++again) {
        REQUIRE(reader.Next(record));
        CHECK(detail::Load<uint64_t>(record.body().data()) == i);
        if (again == 0) reader.Unread(record);
      }
    }
    CHECK(!reader.Next(record));
    CHECK(reader.Release().records == 8);
    CHECK(ring.page().data_tail == offset + 8 * 24);
  }
}

TEST_CASE("what is put back before damage is not counted as damaged", "[ring][corrupt]") {
  MemoryRing ring(256);
  RingReader reader(&ring.page(), ring.data());
  for (uint64_t i = 0; i < 3; ++i) REQUIRE(ring.Write(Numbered(1, i)));
  ring.Put(16 + 6, std::string(2, '\0'));  // the size of the second
  RawRecord record, none;
  REQUIRE(reader.Next(record));
  CHECK(!reader.Next(none));
  reader.Unread(record);
  CHECK(reader.Release().malformed_bytes == 0);
  CHECK(ring.page().data_tail == 0);
  const DrainStats drained = reader.Drain([](const RawRecord&) {});
  CHECK(drained.records == 1);
  CHECK(drained.malformed_bytes == 32);
}

TEST_CASE("a batch of pulls does not see what is written meanwhile; the next one does", "[ring]") {
  MemoryRing ring(256);
  RingReader reader(&ring.page(), ring.data());
  REQUIRE(ring.Write(Numbered(1, 0)));
  RawRecord record;
  REQUIRE(reader.Next(record));
  REQUIRE(ring.Write(Numbered(1, 1)));
  CHECK(!reader.Next(record));
  reader.Release();
  REQUIRE(reader.Next(record));
  CHECK(detail::Load<uint64_t>(record.body().data()) == 1);
  CHECK(reader.Drain([](const RawRecord&) {}).records == 0);  // ends the batch
  CHECK(ring.page().data_tail == 32);
}

TEST_CASE("a head that lags for a moment is an empty ring", "[ring]") {
  MemoryRing ring(256, 1000);
  RingReader reader(&ring.page(), ring.data());
  ring.page().data_head = 1000 - 64;
  DrainStats stats;
  CHECK(DrainAll(reader, &stats).empty());
  CHECK(stats.malformed == 0);
  CHECK(ring.page().data_tail == 1000);
  ring.page().data_head = 1000;
  REQUIRE(ring.Write(Numbered(2)));
  CHECK(DrainAll(reader).size() == 1);
}

TEST_CASE("a ring that is none reads nothing", "[ring]") {
  MemoryRing ring(256);
  REQUIRE(ring.Write(Numbered(2)));
  RingReader nothing;
  CHECK(!nothing.usable());
  CHECK(!nothing.has_records());
  CHECK(DrainAll(nothing).empty());
  for (const size_t size : {0, 4, 24, 255}) {
    RingReader odd(&ring.page(), ring.data().first(size));
    CHECK(!odd.usable());
    CHECK(DrainAll(odd).empty());
    RawRecord record;
    CHECK(!odd.Next(record));
    CHECK(odd.Release().records == 0);
  }
  RingReader no_page(nullptr, ring.data());
  CHECK(DrainAll(no_page).empty());
}

TEST_CASE("a reader moves with its place in the ring", "[ring]") {
  MemoryRing ring(256);
  RingReader first(&ring.page(), ring.data());
  REQUIRE(ring.Write(Numbered(1, 1)));
  REQUIRE(ring.Write(Numbered(1, 2)));
  CHECK(first.Drain([](const RawRecord&) {}, 1).records == 1);
  RingReader second = std::move(first);
  CHECK(DrainAll(second) == std::vector<std::string>{Numbered(1, 2)});
  CHECK(second.stats().records == 2);
}

TEST_CASE("records in plain memory are walked to the first that is none", "[ring]") {
  const std::string records = Numbered(0) + Numbered(3) + Numbered(1);
  for (size_t size = 0; size <= records.size(); ++size) {
    LinearReader reader(std::as_bytes(std::span(records.data(), size)));
    RawRecord record;
    size_t walked = 0;
    while (reader.Next(record)) walked += record.size;
    CHECK(walked + reader.rest().size() == size);
    CHECK(walked == (size < 8 ? 0u : size < 40 ? 8u : size < 56 ? 40u : 56u));
  }
}

}  // namespace
}  // namespace perfkit
