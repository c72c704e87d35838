// Lower bounds: the cheapest system call, two reads of the tick counter, and the cheapest load of a shared word.
#include <benchmark/benchmark.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "perfkit/detail/user_page.h"

namespace {

void Getppid(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(syscall(SYS_getppid));
}
BENCHMARK(Getppid)->Name("Floor/getppid");

// What a scope without a system call can't do without: the time at its begin and at its end.
void Ticks2(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(perfkit::ReadTicks());
    benchmark::DoNotOptimize(perfkit::ReadTicks());
  }
}
BENCHMARK(Ticks2)->Name("Floor/ticks2");

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
