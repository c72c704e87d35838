// Reads the counts of 256 threads from another one: one group for each, one inherited group, or published slots.
#include <perfkit/thread_slots.h>

#include "bench/support/events.h"
#include "bench/support/parked_threads.h"
#include "bench/support/raw_perf.h"

namespace bench {
namespace {

constexpr size_t kThreads = 256;

void RawThreads(benchmark::State& state) {
  const ParkedThreads threads(kThreads, [] {});
  std::vector<RawGroup> groups;
  for (const pid_t tid : threads.tids()) {
    groups.emplace_back(tid);
    if (!groups.back().error().empty()) return state.SkipWithError(groups.back().error().c_str());
  }
  RawGroup::Words words, sum{};
  for (auto _ : state) {
    for (const RawGroup& group : groups) {
      benchmark::DoNotOptimize(group.Read(words));
      for (size_t i = 0; i < words.size(); ++i) sum[i] += words[i];
    }
    benchmark::DoNotOptimize(sum);
  }
}
BENCHMARK(RawThreads)->Name("Threads256/raw");

void InheritedThreads(benchmark::State& state) {
  const auto set = perfkit::CounterSet::Open(Four(), perfkit::Target::AllThreads());
  if (Failed(state, set)) return;
  const ParkedThreads threads(kThreads, [] {});
  perfkit::Snapshot now;
  for (auto _ : state) {
    set->Read(now);
    benchmark::DoNotOptimize(now);
  }
  if (now.missing != 0) state.SkipWithError("an event has no number");
}
BENCHMARK(InheritedThreads)->Name("Threads256/inherited");

void SlotThreads(benchmark::State& state) {
  perfkit::ThreadSlots slots(Four());
  const ParkedThreads threads(kThreads, [&slots] {
    slots.Attach();
    slots.Publish();
  });
  perfkit::SlotTotals totals;
  for (auto _ : state) {
    slots.Total(totals);
    benchmark::DoNotOptimize(totals);
  }
  if (totals.missing != 0 || slots.refused() != 0 || totals.threads != kThreads)
    state.SkipWithError("not all threads were counted");
}
BENCHMARK(SlotThreads)->Name("Threads256/slots");

}  // namespace
}  // namespace bench
