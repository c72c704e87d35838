// One event that only the kernel can read, in the plain read format: the overhead of perfkit over the system call.
#include "bench/support/events.h"
#include "bench/support/raw_perf.h"

namespace bench {
namespace {

void RawRead(benchmark::State& state) {
  const RawCounter counter;
  if (!counter.error().empty()) return state.SkipWithError(counter.error().c_str());
  RawCounter::Words words;
  for (auto _ : state) {
    benchmark::DoNotOptimize(counter.Read(words));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(RawRead)->Name("Read1/raw");

void PerfkitRead(benchmark::State& state) {
  const auto counter = perfkit::Counter::Open(perfkit::event::kCpuClock);
  if (Failed(state, counter)) return;
  if (counter->set().path(0) != perfkit::ReadPath::kGroupRead) return state.SkipWithError("not read by the kernel");
  perfkit::Count count;
  for (auto _ : state) {
    benchmark::DoNotOptimize(counter->Read(count));
    benchmark::DoNotOptimize(count);
  }
}
BENCHMARK(PerfkitRead)->Name("Read1/perfkit");

}  // namespace
}  // namespace bench
