// Lower bounds: the cheapest system call, and the cheapest load of a shared word.
#include <benchmark/benchmark.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

namespace {

void Getppid(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(syscall(SYS_getppid));
}
BENCHMARK(Getppid)->Name("Floor/getppid");

void RelaxedLoad(benchmark::State& state) {
  std::atomic<bool> word{false};
  benchmark::DoNotOptimize(&word);  // Its address escapes, so it must be loaded each time.
  for (auto _ : state) {
    benchmark::DoNotOptimize(word.load(std::memory_order_relaxed));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(RelaxedLoad)->Name("Floor/relaxed_load");

}  // namespace
