// A writer that behaves as the kernel does and a reader, on two threads: no record is torn or lost. Mainly for
// ThreadSanitizer.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "perfkit/ring_reader.h"
#include "tests/support/record_builder.h"
#include "tests/support/work.h"

namespace perfkit {
namespace {

// A record of `words` words, all of them `number`.
std::string Repeated(uint64_t number, size_t words) {
  testing::RecordBuilder builder;
  for (size_t i = 0; i < words; ++i) builder.U64(number);
  return builder.Finish(RecordType::kSample);
}

// Reads until `count` records have come, in order and intact, by `read`, which gets a visitor.
template <class Read>
void ReadAll(uint64_t count, Read&& read) {
  uint64_t next = 0;
  const auto visit = [&](const RawRecord& record) {
    bool whole = true;
    for (size_t at = 0; at < record.body().size(); at += 8) {
      whole = whole && detail::Load<uint64_t>(record.body().data() + at) == next;
    }
    if (!whole) FAIL("record " << next << " is torn");
    ++next;
  };
  while (next < count) {
    const uint64_t before = next;
    read(visit);
    if (next == before) std::this_thread::yield();
  }
  CHECK(next == count);
}

template <class Read>
void WriteAndRead(uint64_t count, Read&& read) {
  testing::MemoryRing ring(4096, uint64_t{0} - 1024);
  RingReader reader(&ring.page(), ring.data());
  std::thread writer([&] {
    for (uint64_t i = 0; i < count; ++i) {
      const std::string record = Repeated(i, 1 + i * 13 % 37);
      while (!ring.Write(record)) std::this_thread::yield();
    }
  });
  ReadAll(count, [&](auto& visit) { read(reader, visit); });
  writer.join();
  CHECK(reader.stats().malformed == 0);
  CHECK(reader.stats().records == count);
}

constexpr uint64_t kCount = testing::kSanitized ? 5'000 : 100'000;

TEST_CASE("a writer and a reader that drains", "[ring][threads][many]") {
  WriteAndRead(kCount, [](RingReader& reader, auto& visit) { reader.Drain(visit); });
}

TEST_CASE("a writer and a reader that drains a little at a time", "[ring][threads][many]") {
  WriteAndRead(kCount, [](RingReader& reader, auto& visit) { reader.Drain(visit, 3); });
}

TEST_CASE("a writer and a reader that pulls, and gives room back within its batch", "[ring][threads][many]") {
  WriteAndRead(kCount, [](RingReader& reader, auto& visit) {
    RawRecord record;
    for (int i = 0; reader.Next(record); ++i) {
      visit(record);
      if (i % 4 == 0) reader.ReleaseRead();
    }
    reader.Release();
  });
}

}  // namespace
}  // namespace perfkit
