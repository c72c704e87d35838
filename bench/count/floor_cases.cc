// What nothing can beat: the cheapest system call there is, and the cheapest look at a shared word.
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
  benchmark::DoNotOptimize(&word);  // its address is known elsewhere: it has to be loaded each time
  for (auto _ : state) {
    benchmark::DoNotOptimize(word.load(std::memory_order_relaxed));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(RelaxedLoad)->Name("Floor/relaxed_load");

}  // namespace
