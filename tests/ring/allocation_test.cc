// Draining, pulling, parsing, dispatching and merging do not allocate.
#include <catch2/catch.hpp>

#include "src/ring/time_merge.h"
#include "tests/ring/sample_values.h"
#include "tests/support/counted_new.h"
#include "tests/support/skip.h"

namespace perfkit {
namespace {

using testing::allocations_so_far;

constexpr AttrBits kAll{.sample_type = (1 << 25) - 1,
                        .read_format = 31,
                        .branch_sample_type = kBranchHwIndex,
                        .regs_user = 0xff,
                        .regs_intr = 3,
                        .sample_id_all = true};

// Records of several types, until the ring is full.
void Fill(testing::MemoryRing& ring) {
  testing::RecordBuilder comm;
  comm.U32(1).U32(2).Text("worker");
  testing::AddTrailer(comm, kAll);
  const std::string named = comm.Finish(RecordType::kComm), sample = testing::BuildSample(kAll);
  while (ring.Write(sample) && ring.Write(named)) continue;
}

TEST_CASE("no record costs an allocation", "[ring][allocation]") {
  if (!testing::kCountsNew) SKIP_TEST("a sanitizer owns operator new");
  testing::MemoryRing first(1 << 14, 1000), second(1 << 14);
  RingReader readers[] = {{&first.page(), first.data()}, {&second.page(), second.data()}};
  ring::TimeMerge merge;
  for (RingReader& reader : readers) merge.Add(reader);
  const SampleLayout layout(kAll);
  uint64_t samples = 0, names = 0, sum = 0, allocated = 0;
  const auto visit = Overloaded{[&](const Sample& sample) {
                                  ++samples;
                                  sum += *sample.ip() + (*sample.read())[0].value + sample.branches().size();
                                  for (const ChainPart& part : sample.chain()) sum += part.pcs.size();
                                },
                                [&](const CommRecord& comm) { names += comm.name.size(); }};
  const auto measure = [&](auto&& read) {
    Fill(first);
    Fill(second);
    const uint64_t before = allocations_so_far;
    read();
    allocated += allocations_so_far - before;
  };
  measure([&] {
    for (RingReader& reader : readers) reader.Drain([&](const RawRecord& record) { Dispatch(record, layout, visit); });
  });
  measure([&] {
    for (RingReader& reader : readers) {
      RawRecord record;
      while (reader.Next(record)) Dispatch(record, layout, visit);
      reader.Release();
    }
  });
  measure([&] {
    merge.Drain(
        UINT64_MAX, [&](const RawRecord& record, size_t) { return layout.TimeOf(record); },
        [&](const RawRecord& record, size_t) {
          Dispatch(record, layout, visit);
          if (const auto sample = FixedSample<kAll>::Parse(record)) sum += sample->user_stack().bytes.size();
        });
  });
  CHECK(samples > 50);
  CHECK(names > 300);
  CHECK(sum > 0);
  CHECK(allocated == 0);
  // The counter of allocations itself works.
  const uint64_t before = allocations_so_far;
  delete new uint64_t(sum);
  (void)std::string(1000, 'x');
  CHECK(allocations_so_far > before);
}

}  // namespace
}  // namespace perfkit
