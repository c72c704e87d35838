// Merges rings of 128 KiB by time: perfkit's merge, and all records through one heap.
#include <benchmark/benchmark.h>
#include <perfkit/sample.h>

#include <deque>
#include <queue>
#include <random>

#include "bench/ring/filled_ring.h"
#include "src/ring/time_merge.h"

namespace bench {
namespace {

using perfkit::RawRecord;

constexpr size_t kRingSize = 128 << 10;
constexpr perfkit::AttrBits kBits{.sample_type = perfkit::kSampleIp | perfkit::kSampleTid | perfkit::kSampleTime |
                                                 perfkit::kSamplePeriod};

// `count` full rings with consecutive times and random gaps, and their readers.
struct Rings {
  explicit Rings(size_t count) {
    std::mt19937_64 random(2026);
    for (size_t i = 0; i < count; ++i) {
      uint64_t time = random() % 1000;
      rings.emplace_back(kRingSize, [&](uint64_t number) {
        time += random() % 2000;
        const uint64_t words[] = {uint64_t{40} << 48 | 9, 0x400000 + number, 7, time, 1};
        return std::string(reinterpret_cast<const char*>(words), sizeof(words));
      });
      readers.emplace_back(&rings.back().page(), rings.back().data());
      records += rings.back().records();
    }
  }
  void Refill() {
    for (FilledRing& ring : rings) ring.Refill();
  }

  std::deque<FilledRing> rings;
  std::deque<perfkit::RingReader> readers;
  size_t records = 0;
};

template <size_t kRings>
void Perfkit(benchmark::State& state) {
  Rings rings(kRings);
  perfkit::ring::TimeMerge merge;
  for (perfkit::RingReader& reader : rings.readers) merge.Add(reader);
  const perfkit::SampleLayout layout(kBits);
  uint64_t sum = 0, last = 0, wrong = 0;
  while (state.KeepRunningBatch(static_cast<int64_t>(rings.records))) {
    rings.Refill();
    last = 0;
    merge.Drain(
        UINT64_MAX, [&](const RawRecord& record, size_t) { return layout.TimeOf(record); },
        [&](const RawRecord& record, size_t) {
          const uint64_t time = layout.TimeOf(record).value_or(last);
          wrong += time < last ? 1 : 0;
          last = time;
          sum += record.type;
        });
  }
  if (wrong != 0) state.SkipWithError("not in the order of time");
  benchmark::DoNotOptimize(sum);
}

struct Entry {
  uint64_t time;
  RawRecord record;
  bool operator>(const Entry& other) const { return time > other.time; }
};

template <size_t kRings>
void Heap(benchmark::State& state) {
  Rings rings(kRings);
  const perfkit::SampleLayout layout(kBits);
  uint64_t sum = 0, last = 0, wrong = 0;
  std::vector<Entry> room;
  room.reserve(rings.records + rings.rings.size());
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue({}, std::move(room));
  while (state.KeepRunningBatch(static_cast<int64_t>(rings.records))) {
    rings.Refill();
    for (perfkit::RingReader& reader : rings.readers) {
      RawRecord record;
      while (reader.Next(record)) queue.push({layout.TimeOf(record).value_or(UINT64_MAX), record});
    }
    last = 0;
    for (; !queue.empty(); queue.pop()) {
      wrong += queue.top().time < last ? 1 : 0;
      last = queue.top().time;
      sum += queue.top().record.type;
    }
    for (perfkit::RingReader& reader : rings.readers) reader.Release();
  }
  if (wrong != 0) state.SkipWithError("not in the order of time");
  benchmark::DoNotOptimize(sum);
}

#define BENCH_MERGE(rings)                                    \
  BENCHMARK(Perfkit<rings>)->Name("Merge" #rings "/perfkit"); \
  BENCHMARK(Heap<rings>)->Name("Merge" #rings "/heap")
BENCH_MERGE(2);
BENCH_MERGE(8);
BENCH_MERGE(64);

}  // namespace
}  // namespace bench
