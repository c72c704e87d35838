// Nothing is allocated for a record: not by draining, pulling, parsing, dispatching or merging.
#include <catch2/catch.hpp>
#include <cstdlib>

#include "src/ring/time_merge.h"
#include "tests/ring/sample_values.h"
#include "tests/support/skip.h"

namespace {
// Counted for the whole program; read around the code in question, on one thread.
thread_local uint64_t allocations_so_far = 0;
}  // namespace

// A sanitizer checks its own operator new against its own free: it is left alone, and the test is skipped.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(size_t size) {
  ++allocations_so_far;
  if (void* const memory = std::malloc(size)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace perfkit {
namespace {

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
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  SKIP_TEST("a sanitizer owns operator new");
#endif
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
  // The count counts.
  const uint64_t before = allocations_so_far;
  delete new uint64_t(sum);
  (void)std::string(1000, 'x');
  CHECK(allocations_so_far > before);
}

}  // namespace
}  // namespace perfkit
