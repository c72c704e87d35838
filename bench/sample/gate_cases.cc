// Gating a running sampler, and taking a snapshot of one: what the thread that asks pays.
#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

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

// Enough faults to fill the ring, 64 bytes each.
void Fill(char* memory, size_t pages) {
  madvise(memory, pages * 4096, MADV_DONTNEED);
  for (size_t i = 0; i < pages; ++i) *static_cast<volatile char*>(memory + 4096 * i) = 1;
}

// The switch alone; what is behind it, at leisure, is `records`.
void Snapshot(benchmark::State& state) {
  auto sampler = perfkit::Sampler::Open(Faults(perfkit::RingMode::kOverwrite));
  if (!sampler.ok() || !sampler->Start().ok()) return state.SkipWithError("the sampler does not open");
  constexpr size_t kPages = 2000;
  void* const memory = mmap(nullptr, kPages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return state.SkipWithError("no memory");
  madvise(memory, kPages * 4096, MADV_NOHUGEPAGE);
  uint64_t records = 0, missed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    Fill(static_cast<char*>(memory), kPages);
    state.ResumeTiming();
    const auto takeover = sampler->Snapshot();
    state.PauseTiming();
    if (!takeover.ok()) state.SkipWithError("no snapshot");
    const size_t now = sampler->Drain([](const perfkit::SamplerRecord&) {});
    records += now;
    missed += now < kPages ? kPages - now : 0;
    state.ResumeTiming();
  }
  munmap(memory, kPages * 4096);
  state.counters["records"] = benchmark::Counter(static_cast<double>(records), benchmark::Counter::kAvgIterations);
  state.counters["missed"] = static_cast<double>(missed);
}
BENCHMARK(Snapshot)->Name("Snapshot512K")->Iterations(50);

}  // namespace
}  // namespace bench
