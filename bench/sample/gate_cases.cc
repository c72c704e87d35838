// Pausing and resuming a running sampler, and taking a snapshot of one: the cost for the calling thread.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "bench/sample/source.h"
#include "perfkit/sampler.h"

namespace bench {
namespace {

perfkit::SamplerOptions Faults(perfkit::RingMode mode) {
  perfkit::SamplerOptions options;
  options.events = {{.event = "page-faults:u", .rate = perfkit::Period{1}}};
  options.mode = mode;
  options.ring_bytes = 512 << 10;
  return options;
}

void Getppid(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(syscall(SYS_getppid));
}
BENCHMARK(Getppid)->Name("Gate/getppid");

void GatePair(benchmark::State& state) {
  auto sampler = perfkit::Sampler::Open(Faults(perfkit::RingMode::kStream));
  if (!sampler.ok() || !sampler->Start().ok()) return state.SkipWithError("the sampler does not open");
  for (auto _ : state) {
    if (!sampler->Pause().ok() || !sampler->Resume().ok()) state.SkipWithError("it cannot be paused");
  }
}
BENCHMARK(GatePair)->Name("Gate/pair");

constexpr size_t kRingBytes = 512 << 10;
constexpr size_t kRecordBytes = 40;                           // Header, identifier, ip, tid, time.
constexpr size_t kPages = 5 * kRingBytes / kRecordBytes / 4;  // A quarter more faults than records fit.

void Fault(char* memory) {
  madvise(memory, kPages * 4096, MADV_DONTNEED);
  for (size_t i = 0; i < kPages; ++i) static_cast<void>(*static_cast<volatile char*>(memory + i * 4096));
}

double TimeOf(perfkit::Sampler& sampler, bool* taken) {
  const double begun = Seconds(CLOCK_MONOTONIC);
  *taken = sampler.Snapshot().ok();
  return Seconds(CLOCK_MONOTONIC) - begun;
}

// What the visitor got: the number of records and bytes, and whether each record is older than the one before it.
struct Seen {
  uint64_t records = 0, bytes = 0;
};

Seen Drain(perfkit::Sampler& sampler) {
  Seen seen;
  sampler.Drain([&](const perfkit::SamplerRecord& record) { ++seen.records, seen.bytes += record.size; });
  return seen;
}

// Times the switch alone, in wall time, after the ring has been filled and has begun to overwrite. The contents are
// checked later: each event that the kernel counted must be delivered, or its bytes counted as overwritten.
void Snapshot(benchmark::State& state) {
  auto sampler = perfkit::Sampler::Open(Faults(perfkit::RingMode::kOverwrite));
  if (!sampler.ok() || !sampler->Start().ok()) return state.SkipWithError("the sampler does not open");
  if (sampler->ring_bytes() != kRingBytes) return state.SkipWithError("a ring of 512 KiB may not be locked");
  void* const memory = mmap(nullptr, kPages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return state.SkipWithError("no memory");
  madvise(memory, kPages * 4096, MADV_NOHUGEPAGE);
  uint64_t records = 0, bytes = 0, least = UINT64_MAX;
  for (auto _ : state) {
    Fault(static_cast<char*>(memory));
    bool taken = false;
    state.SetIterationTime(TimeOf(*sampler, &taken));
    const Seen seen = Drain(*sampler);
    if (!taken) state.SkipWithError("no snapshot");
    records += seen.records, bytes += seen.bytes;
    least = std::min(least, seen.records);
  }
  munmap(memory, kPages * 4096);
  const bool stopped = sampler->Stop().ok();
  const Seen rest = Drain(*sampler);
  const perfkit::SamplerStats stats = sampler->stats();
  const perfkit::EventAccounting& event = stats.events[0];
  const bool closed =
      stopped && stats.malformed_bytes == 0 && event.delivered == records + rest.records &&
      bytes + rest.bytes + stats.overwritten_bytes + kRecordBytes * event.lost == kRecordBytes * event.counted;
  if (!closed) state.SkipWithError("the accounting does not balance");
  if (least < kRingBytes / kRecordBytes - 1) state.SkipWithError("a ring was not full");
  state.counters["records"] = static_cast<double>(least);
}
BENCHMARK(Snapshot)->Name("Snapshot512K")->UseManualTime()->Iterations(5);

}  // namespace
}  // namespace bench
