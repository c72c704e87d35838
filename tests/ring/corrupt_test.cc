// Rings with damaged bytes or positions: the batch stops, each byte is accounted for, and the next batch works.
#include <catch2/catch.hpp>
#include <random>

#include "perfkit/ring_reader.h"
#include "tests/support/record_builder.h"

namespace perfkit {
namespace {

using testing::MemoryRing;

// Four records in a ring, and methods that damage them. The second record begins at 40.
class Damaged {
 public:
  explicit Damaged(uint64_t start = 0) : ring_(512, start), reader_(&ring_.page(), ring_.data()), start_(start) {
    for (uint64_t i = 0; i < 4; ++i) Write(i);
  }

  void SetSize(uint16_t size) { ring_.Put(start_ + 40 + 6, {reinterpret_cast<const char*>(&size), 2}); }
  void Write(uint64_t i) {
    testing::RecordBuilder builder;
    builder.U64(i).U64(i).U64(i).U64(i);
    REQUIRE(ring_.Write(builder.Finish(RecordType::kSample)));
  }
  // Drains; the sums must agree with what was written since the last time.
  DrainStats Drain() {
    const uint64_t before = ring_.page().data_tail;
    const DrainStats stats = reader_.Drain([](const RawRecord& record) {
      CHECK(record.size >= 8);
      CHECK(record.size % 8 == 0);
    });
    CHECK(stats.bytes + stats.malformed_bytes == ring_.page().data_head - before);
    CHECK(ring_.page().data_tail == ring_.page().data_head);
    return stats;
  }
  MemoryRing& ring() { return ring_; }
  RingReader& reader() { return reader_; }

 private:
  MemoryRing ring_;
  RingReader reader_;
  uint64_t start_;
};

TEST_CASE("a size that cannot be stops the batch, is counted, and the next batch works", "[ring][corrupt]") {
  for (uint64_t start = 0; start < 512; start += 8) {
    for (const uint16_t size : {0, 1, 7, 9, 41, 128, 160, 65528, 65535}) {
      Damaged damaged(start);
      damaged.SetSize(size);
      const DrainStats stats = damaged.Drain();
      INFO("size " << size << " at " << start);
      CHECK(stats.malformed == 1);
      CHECK(stats.records == 1);
      CHECK(stats.malformed_bytes == 120);
      damaged.Write(5);
      const DrainStats next = damaged.Drain();
      CHECK(next.records == 1);
      CHECK(next.malformed == 0);
      CHECK(damaged.reader().stats().malformed == 1);
    }
  }
}

TEST_CASE("a size that lies but fits is found when its end is no record", "[ring][corrupt]") {
  Damaged damaged;
  damaged.SetSize(48);  // ends in the third record's header
  const DrainStats stats = damaged.Drain();
  CHECK(stats.records + stats.malformed >= 2);
  damaged.Write(5);
  CHECK(damaged.Drain().records == 1);
}

TEST_CASE("what Next cannot read ends its batch, and is dropped with Release", "[ring][corrupt]") {
  Damaged damaged;
  damaged.SetSize(0);
  RawRecord record;
  CHECK(damaged.reader().Next(record));
  CHECK(!damaged.reader().Next(record));
  CHECK(!damaged.reader().Next(record));
  const DrainStats stats = damaged.reader().Release();
  CHECK(stats.records == 1);
  CHECK(stats.malformed == 1);
  CHECK(stats.malformed_bytes == 120);
  damaged.Write(5);
  CHECK(damaged.Drain().records == 1);
}

TEST_CASE("positions that make no sense drop everything once", "[ring][corrupt]") {
  struct Lie {
    const char* what;
    uint64_t tail, head;
  };
  for (const Lie& lie :
       {Lie{"more than the ring holds", 0, 520}, Lie{"much more", 8, uint64_t{1} << 63},
        Lie{"a head within a word", 0, 100}, Lie{"a tail within a word", 3, 80}, Lie{"both within words", 3, 83}}) {
    INFO(lie.what);
    MemoryRing ring(512);
    ring.page().data_tail = lie.tail;
    RingReader reader(&ring.page(), ring.data());
    ring.page().data_head = lie.head;
    const DrainStats stats = reader.Drain([](const RawRecord&) { FAIL("nothing can be read"); });
    CHECK(stats.malformed == 1);
    CHECK(stats.malformed_bytes == lie.head - lie.tail);
    CHECK(ring.page().data_tail == lie.head);
    // Aligned again, it works again.
    const uint64_t aligned = (lie.head + 7) / 8 * 8;
    ring.page().data_head = aligned;
    reader.Drain([](const RawRecord&) { FAIL("nothing can be read"); });
    REQUIRE(ring.Write(testing::RecordBuilder().U64(1).Finish(RecordType::kSample)));
    CHECK(reader.Drain([](const RawRecord&) {}).records == 1);
    RawRecord record;
    CHECK(!reader.Next(record));
  }
}

TEST_CASE("random bytes at random positions: the accounting balances over every batch", "[ring][corrupt]") {
  constexpr size_t kSize = 1024;
  std::mt19937_64 random(7);
  MemoryRing ring(kSize);
  RingReader reader(&ring.page(), ring.data());
  RingReader backward = RingReader::Overwrite(&ring.page(), ring.data());
  for (int round = 0; round < 5'000; ++round) {
    // Plausible sizes, except at one of thirty offsets.
    for (size_t at = 0; at < kSize; at += 8) {
      const uint64_t size = random() % 30 == 0 ? random() : 8 + random() % 12 * 8;
      ring.Put(at + 6, {reinterpret_cast<const char*>(&size), 2});
    }
    const uint64_t before = ring.page().data_tail;
    ring.page().data_head = before + (random() % 8 == 0 ? random() % 100'000 : random() % (kSize / 8 + 1) * 8);
    const DrainStats stats = reader.Drain([&](const RawRecord& record) { REQUIRE(record.size <= kSize); });
    CHECK(stats.bytes + stats.malformed_bytes == ring.page().data_head - before);
    CHECK(ring.page().data_tail == ring.page().data_head);
    backward.Drain([&](const RawRecord& record) { REQUIRE(record.size <= kSize); });
  }
  CHECK(reader.stats().malformed > 1000);
  CHECK(reader.stats().records > 1000);
}

}  // namespace
}  // namespace perfkit
