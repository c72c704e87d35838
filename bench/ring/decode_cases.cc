// Records of one ring of 512 KiB, read in four ways: headers only (the minimum), with a layout known at compile time,
// with one known at run time, and into objects with vectors, as parsers are often written.
//
// The samples: 40 has ip, tid, time and period. Chain20 also has a call chain of 20. Stack8K also has 20 registers and
// 8 KiB of stack, half of it copied. The two views read each number, and of lists the length and the first element.
#include <benchmark/benchmark.h>
#include <perfkit/sample.h>

#include <memory>
#include <optional>
#include <string>

#include "bench/ring/filled_ring.h"

namespace bench {
namespace {

using perfkit::RawRecord;

constexpr size_t kRingSize = 512 << 10;
constexpr uint64_t kScalars = perfkit::kSampleIp | perfkit::kSampleTid | perfkit::kSampleTime | perfkit::kSamplePeriod;

struct Decode40 {
  static constexpr perfkit::AttrBits kBits{.sample_type = kScalars};
  static constexpr size_t kChain = 0, kStack = 0;
};
struct DecodeChain20 {
  static constexpr perfkit::AttrBits kBits{.sample_type = kScalars | perfkit::kSampleCallchain};
  static constexpr size_t kChain = 20, kStack = 0;
};
struct DecodeStack8K {
  static constexpr perfkit::AttrBits kBits{
      .sample_type = kScalars | perfkit::kSampleRegsUser | perfkit::kSampleStackUser, .regs_user = 0xff0fff};
  static constexpr size_t kChain = 0, kStack = 8192;
};

template <class Kind>
std::string MakeRecord(uint64_t number) {
  std::vector<uint64_t> words = {0, 0x400000 + number, number << 32 | 7, 1000 * number, 1'000'000};
  if (Kind::kChain != 0) words.push_back(Kind::kChain);
  for (size_t i = 0; i < Kind::kChain; ++i) words.push_back(0x400000 + i * 16);
  if (Kind::kStack != 0) {
    words.push_back(2);
    for (size_t i = 0; i < 20; ++i) words.push_back(i);
    words.push_back(Kind::kStack);
    words.resize(words.size() + Kind::kStack / 8, 0x1234);
    words.push_back(Kind::kStack / 2);
  }
  words[0] = uint64_t{8 * words.size()} << 48 | uint64_t{2} << 32 | uint64_t{9};
  return {reinterpret_cast<const char*>(words.data()), 8 * words.size()};
}

template <class Kind>
FilledRing& RingOf() {
  static FilledRing ring(kRingSize, MakeRecord<Kind>);
  return ring;
}

// Reads all fields that the two views compare.
template <class Kind, class AnySample>
__attribute__((always_inline)) inline uint64_t Consume(const AnySample& sample) {
  uint64_t sum = *sample.ip() + sample.task()->tid + *sample.time_ns() + *sample.period();
  if constexpr (Kind::kChain != 0) {
    const perfkit::Words chain = sample.chain().words();
    sum += chain.size() + chain[0];
  }
  if constexpr (Kind::kStack != 0) {
    const perfkit::Bytes stack = sample.user_stack().bytes;
    sum += *sample.user_registers()[0] + stack.size() + static_cast<uint64_t>(stack[0]);
  }
  return sum;
}

// Drains the ring with `visit` until the benchmark ends.
template <class Kind, class Visitor>
void DrainAgain(benchmark::State& state, Visitor&& visit) {
  FilledRing& ring = RingOf<Kind>();
  perfkit::RingReader reader(&ring.page(), ring.data());
  while (state.KeepRunningBatch(static_cast<int64_t>(ring.records()))) {
    ring.Refill();
    reader.Drain(visit);
  }
  if (reader.stats().malformed != 0) state.SkipWithError("the ring was malformed");
}

// The minimum: from header to header, each checked against the bytes that are left, with records that wrap copied. A
// reader of untrusted bytes can't do less.
template <class Kind>
void Walk(benchmark::State& state) {
  FilledRing& ring = RingOf<Kind>();
  const std::byte* const data = ring.data().data();
  const uint64_t size = ring.data().size();
  std::vector<std::byte> whole(1 << 16);
  uint64_t sum = 0;
  while (state.KeepRunningBatch(static_cast<int64_t>(ring.records()))) {
    ring.Refill();
    const uint64_t head = perfkit::LoadShared(ring.page().data_head);
    uint64_t tail = ring.page().data_tail;
    while (tail != head) {
      const std::byte* record = data + (tail & (size - 1));
      const uint64_t header = perfkit::detail::Load<uint64_t>(record), bytes = header >> 48;
      if (bytes < 8 || bytes > head - tail) [[unlikely]]
        break;
      const uint64_t first = size - (tail & (size - 1));
      if (bytes > first) [[unlikely]] {
        std::memcpy(whole.data(), record, first);
        std::memcpy(whole.data() + first, data, bytes - first);
        record = whole.data();
      }
      benchmark::DoNotOptimize(record);
      sum += static_cast<uint32_t>(header);
      tail += bytes;
    }
    __atomic_store_n(&ring.page().data_tail, tail, __ATOMIC_RELEASE);
  }
  benchmark::DoNotOptimize(sum);
}

template <class Kind>
void Fixed(benchmark::State& state) {
  uint64_t sum = 0;
  DrainAgain<Kind>(state, [&](const RawRecord& record) {
    if (const auto sample = perfkit::FixedSample<Kind::kBits>::Parse(record)) sum += Consume<Kind>(*sample);
  });
  benchmark::DoNotOptimize(sum);
}

template <class Kind>
void Runtime(benchmark::State& state) {
  perfkit::SampleLayout layout(Kind::kBits);
  benchmark::DoNotOptimize(layout);
  uint64_t sum = 0;
  DrainAgain<Kind>(state, [&](const RawRecord& record) {
    if (const auto sample = perfkit::Sample::Parse(record, layout)) sum += Consume<Kind>(*sample);
  });
  benchmark::DoNotOptimize(sum);
}

struct HeapSample {
  std::optional<uint64_t> ip, time, period;
  std::optional<uint32_t> pid, tid;
  std::vector<uint64_t> chain, registers;
  std::vector<std::byte> stack;
};

// Constructs an object for each record and copies lists. Checks no bounds, which favours this parser.
std::unique_ptr<HeapSample> ParseToHeap(const RawRecord& record, const perfkit::AttrBits& bits) {
  const std::byte* at = record.body().data();
  const auto take = [&at] {
    const uint64_t word = perfkit::detail::Load<uint64_t>(at);
    at += sizeof(word);
    return word;
  };
  auto sample = std::make_unique<HeapSample>();
  if ((bits.sample_type & perfkit::kSampleIp) != 0) sample->ip = take();
  if ((bits.sample_type & perfkit::kSampleTid) != 0) {
    const uint64_t task = take();
    sample->pid = static_cast<uint32_t>(task);
    sample->tid = static_cast<uint32_t>(task >> 32);
  }
  if ((bits.sample_type & perfkit::kSampleTime) != 0) sample->time = take();
  if ((bits.sample_type & perfkit::kSamplePeriod) != 0) sample->period = take();
  if ((bits.sample_type & perfkit::kSampleCallchain) != 0) {
    sample->chain.resize(take());
    for (uint64_t& pc : sample->chain) pc = take();
  }
  if ((bits.sample_type & perfkit::kSampleRegsUser) != 0 && take() != 0) {
    sample->registers.resize(static_cast<size_t>(std::popcount(bits.regs_user)));
    for (uint64_t& value : sample->registers) value = take();
  }
  if ((bits.sample_type & perfkit::kSampleStackUser) != 0) {
    const uint64_t size = take();
    const uint64_t copied = perfkit::detail::Load<uint64_t>(at + size);
    sample->stack.assign(at, at + copied);
  }
  return sample;
}

template <class Kind>
void Heap(benchmark::State& state) {
  uint64_t sum = 0;
  DrainAgain<Kind>(state, [&](const RawRecord& record) {
    if (record.type != static_cast<uint32_t>(perfkit::RecordType::kSample)) return;
    const std::unique_ptr<HeapSample> sample = ParseToHeap(record, Kind::kBits);
    benchmark::DoNotOptimize(sample.get());
    sum += *sample->ip + *sample->tid + *sample->time + *sample->period;
  });
  benchmark::DoNotOptimize(sum);
}

#define BENCH_DECODE(kind)                                  \
  BENCHMARK(Walk<kind>)->Name(#kind "/walk");               \
  BENCHMARK(Fixed<kind>)->Name(#kind "/perfkit_fixed");     \
  BENCHMARK(Runtime<kind>)->Name(#kind "/perfkit_runtime"); \
  BENCHMARK(Heap<kind>)->Name(#kind "/heap_sample")
BENCH_DECODE(Decode40);
BENCH_DECODE(DecodeChain20);
BENCH_DECODE(DecodeStack8K);

}  // namespace
}  // namespace bench
