// Another project's benchmark, with perfkit's one edit and the stock main: 256 page faults a round.
#include <perfkit/benchmark.h>
#include <sys/mman.h>

static void Touch(benchmark::State& state) {
  constexpr size_t kPages = 256, kPage = 4096;
  void* const memory = mmap(nullptr, kPages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  madvise(memory, kPages * kPage, MADV_NOHUGEPAGE);
  for (auto _ : perfkit::counted(state, {"page-faults"})) {
    for (size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(memory)[i * kPage] = 1;
    state.PauseTiming();
    madvise(memory, kPages * kPage, MADV_DONTNEED);
    state.ResumeTiming();
  }
  munmap(memory, kPages * kPage);
}
BENCHMARK(Touch)->Iterations(1000);

BENCHMARK_MAIN();
