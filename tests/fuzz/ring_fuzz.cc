// Fuzzes the ring reader: 24 bytes say where head and tail are and how the ring is read, the rest is the ring.
//
// Whatever the bytes: the accounting balances, views lie within the ring or the reader's copy, and the next batch
// works.
#include <cstring>
#include <vector>

#include "perfkit/ring_reader.h"
#include "tests/fuzz/fuzz_target.h"

namespace perfkit {
namespace {

// Reads every byte of every record: a sanitizer sees those that are not ours.
uint64_t SumRecord(const RawRecord& record) {
  PERFKIT_FUZZ_CHECK(record.size >= RawRecord::kHeaderSize && record.size % 8 == 0);
  uint64_t sum = 0;
  for (const std::byte byte : record.bytes()) sum += static_cast<uint64_t>(byte);
  return sum;
}

void PullAll(RingReader& reader) {
  RawRecord record;
  for (int i = 0; reader.Next(record); ++i) {
    SumRecord(record);
    if (i % 5 == 3) reader.ReleaseRead();
    if (i % 7 == 6) {
      reader.Unread(record);
      PERFKIT_FUZZ_CHECK(reader.Next(record));
    }
  }
  reader.Release();
}

}  // namespace

PERFKIT_FUZZ_TARGET(FuzzRing) {
  struct {
    uint64_t head, tail;
    uint32_t limit, how;
  } start{};
  if (size < sizeof(start)) return 0;
  std::memcpy(&start, data, sizeof(start));
  const size_t room = std::bit_floor(size - sizeof(start));
  if (room < 8) return 0;
  std::vector<std::byte> ring(room);
  std::memcpy(ring.data(), data + sizeof(start), room);
  std::vector<UserPage> page(1);
  page[0].data_tail = start.tail;
  page[0].data_head = start.head;
  if ((start.how & 1) != 0) {
    RingReader reader = RingReader::Overwrite(page.data(), ring);
    const DrainStats stats = reader.Drain(SumRecord, start.limit);
    PERFKIT_FUZZ_CHECK(stats.records <= start.limit && stats.bytes <= room);
    reader.Rewind();
    PullAll(reader);
    return 0;
  }
  RingReader reader(page.data(), ring);
  if ((start.how & 2) != 0) PullAll(reader);
  const uint64_t before = page[0].data_tail;
  const DrainStats stats = reader.Drain(SumRecord, start.limit);
  PERFKIT_FUZZ_CHECK(stats.bytes + stats.malformed_bytes == page[0].data_tail - before);
  // What is whole again is read again.
  const uint64_t aligned = (page[0].data_tail + 7) / 8 * 8;
  page[0].data_head = aligned;
  reader.Drain(SumRecord);
  const uint64_t header = uint64_t{8} << 48;
  std::memcpy(ring.data() + (aligned & (room - 1)), &header, sizeof(header));
  page[0].data_head = aligned + 8;
  PERFKIT_FUZZ_CHECK(page[0].data_tail != aligned || reader.Drain(SumRecord).records == 1);
  return 0;
}

}  // namespace perfkit
