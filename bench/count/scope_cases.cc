// An empty scope over four software events: the cost of the measurement itself.
#include <perfkit/scope.h>

#include "bench/support/events.h"
#include "bench/support/raw_perf.h"
#ifdef PERFKIT_BENCH_PAPI
#include "bench/support/papi/papi_peer.h"
#endif

namespace bench {
namespace {

void RawScope(benchmark::State& state) {
  const RawGroup group;
  if (!group.error().empty()) return state.SkipWithError(group.error().c_str());
  RawGroup::Words begin, end;
  for (auto _ : state) {
    benchmark::DoNotOptimize(group.Read(begin));
    benchmark::DoNotOptimize(group.Read(end));
    benchmark::ClobberMemory();
  }
}
BENCHMARK(RawScope)->Name("Scope4/raw_group");

void PerfkitScope(benchmark::State& state, const perfkit::CounterOptions& options) {
  const auto set = perfkit::CounterSet::Open(Four(), perfkit::Target::ThisThread(), options);
  if (Failed(state, set)) return;
  perfkit::ScopeTotals total;
  for (auto _ : state) {
    const perfkit::CounterScope scope(*set, total);
    benchmark::ClobberMemory();
  }
  benchmark::DoNotOptimize(total);
}
BENCHMARK_CAPTURE(PerfkitScope, group, GroupRead())->Name("Scope4/perfkit_group");
BENCHMARK_CAPTURE(PerfkitScope, fast, perfkit::CounterOptions{})->Name("Scope4/perfkit_fast");

void PapiScope(benchmark::State& state) {
#ifdef PERFKIT_BENCH_PAPI
  const PapiSet set;
  if (!set.error().empty()) return state.SkipWithError(set.error().c_str());
  PapiSet::Values begin, end;
  for (auto _ : state) {
    benchmark::DoNotOptimize(set.Read(begin));
    benchmark::DoNotOptimize(set.Read(end));
    benchmark::ClobberMemory();
  }
#else
  state.SkipWithError("built without PAPI (Debian: libpapi-dev)");
#endif
}
BENCHMARK(PapiScope)->Name("Scope4/papi");

}  // namespace
}  // namespace bench
