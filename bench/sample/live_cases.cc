// The cost of a sample for the sampled thread, in its own CPU time, at 1 kHz: without a stack; with a copy of 16 KiB;
// with the kernel's signal and a handler that only counts it (bare_signal.h, without perfkit: the minimum for live
// stacks); with a live stack whose walker finds the interrupted frame only; and with a live stack.
//
// Runs on a thread of its own. The kernel copies up to the end of the stack's mapping, which is close above the frames
// of a main thread: there, a dump of 16 KiB would have 5.
#include <benchmark/benchmark.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "bench/sample/bare_signal.h"
#include "bench/sample/live_work.h"
#include "bench/sample/source.h"
#include "bench/support/full_run.h"
#include "perfkit/live_unwinder.h"
#include "perfkit/sampler.h"
#include "src/unwind/live_walker.h"

namespace bench {
namespace {

class FlatWalker : public perfkit::unwind::LiveWalker {
 public:
  absl::Status Maintain() override { return absl::OkStatus(); }
  perfkit::UnwoundStack Walk(const ucontext_t& context, std::span<perfkit::StackFrame> frames) noexcept override {
#if defined(__x86_64__)
    frames[0].pc = static_cast<uint64_t>(context.uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    frames[0].pc = context.uc_mcontext.pc;
#endif
    return {.frames = 1, .end = perfkit::StackEnd::kRoot};
  }
  static std::unique_ptr<perfkit::unwind::LiveWalker> Make() { return std::make_unique<FlatWalker>(); }
};

double CpuSeconds(void (*run)()) {
  const double begun = Seconds(CLOCK_THREAD_CPUTIME_ID);
  run();
  return Seconds(CLOCK_THREAD_CPUTIME_ID) - begun;
}

// Returns the mean of the middle 60 % of the rounds, because rounds have different numbers of samples.
double MeanOfMost(std::vector<double>& values) {
  std::sort(values.begin(), values.end());
  const auto cut = static_cast<std::ptrdiff_t>(values.size() / 5);
  const double sum = std::accumulate(values.begin() + cut, values.end() - cut, 0.0);
  return sum / static_cast<double>(std::ssize(values) - 2 * cut);
}

// Returns the seconds that a sample of each of `priced` costs, from rounds with samples between rounds without. They
// take turns, so that what changes on the machine meanwhile changes all alike.
template <class... Priced>
std::array<double, sizeof...(Priced)> CostsOf(const LiveWork& work, Priced&... priced) {
  constexpr size_t kAll = sizeof...(Priced);
  const int rounds = full_run ? 110 : 5;
  std::array<std::vector<double>, kAll> more;
  const std::array<uint64_t, kAll> before = {priced.taken()...};
  double last = CpuSeconds(work.run);
  const auto measure = [&](auto& one, std::vector<double>& costs) {
    if (!one.Start()) std::abort();
    const double with = CpuSeconds(work.run);
    if (!one.Stop()) std::abort();
    (void)CpuSeconds(work.run);  // Not measured: it refills the caches.
    const double next = CpuSeconds(work.run);
    costs.push_back(with - (last + next) / 2);
    last = next;
  };
  for (int round = 0; round < rounds; ++round) {
    size_t i = 0;
    (measure(priced, more[i++]), ...);
  }
  const std::array<uint64_t, kAll> after = {priced.taken()...};
  std::array<double, kAll> costs;
  for (size_t i = 0; i < kAll; ++i) {
    costs[i] = MeanOfMost(more[i]) * rounds / std::max<double>(1, static_cast<double>(after[i] - before[i]));
  }
  return costs;
}

// Returns the mean over all works, of each. Reports the first one's.
template <class... Priced>
std::array<double, sizeof...(Priced)> PriceAll(benchmark::State& state, Priced&... priced) {
  std::array<double, sizeof...(Priced)> means{};
  for (auto _ : state) {
    for (const LiveWork& work : LiveWorks()) {
      const auto costs = CostsOf(work, priced...);
      state.counters[work.name] = 1e9 * costs[0];
      for (size_t i = 0; i < costs.size(); ++i) means[i] += costs[i] / static_cast<double>(LiveWorks().size());
    }
    state.SetIterationTime(std::max(1e-9, means[0]));
  }
  return means;
}

// A sampler, and the number of samples that it has taken.
class PricedSampler {
 public:
  explicit PricedSampler(const perfkit::CallStack& stack) {
    perfkit::SamplerOptions options;
    options.events = {{.event = "cpu-clock", .rate = perfkit::Frequency{1000}}};
    options.user_only = true;
    options.stack = stack;
    sampler_ = perfkit::Sampler::Open(options);
  }
  absl::Status status() const { return sampler_.status(); }

  bool Start() { return sampler_->Start().ok(); }
  bool Stop() {
    const bool stopped = sampler_->Stop().ok();
    sampler_->Drain([&](const perfkit::SamplerRecord& record) {
      if (const auto stack = perfkit::LiveStack::Parse(record, sampler_->layout())) {
        complete_ += stack->end == perfkit::StackEnd::kRoot ? 1 : 0;
      } else if (const auto sample = perfkit::Sample::Parse(record, sampler_->layout())) {
        copied_bytes_ += sample->user_stack().bytes.size();
      }
    });
    return stopped;
  }
  uint64_t taken() const { return accounting().accounted(); }

  perfkit::EventAccounting accounting() const { return sampler_->stats().events[0]; }
  uint64_t whole() const { return complete_; }
  uint64_t copied_bytes() const { return copied_bytes_; }

 private:
  absl::StatusOr<perfkit::Sampler> sampler_ = absl::UnknownError("not opened");
  uint64_t complete_ = 0, copied_bytes_ = 0;
};

// Reports the cost of a sample for this thread; for live stacks also how many are truncated, and the cost as a multiple
// of the bare signal's in the same rounds.
void SampleHere(benchmark::State& state, const perfkit::CallStack& stack) {
  PricedSampler priced(stack);
  if (!priced.status().ok()) return state.SkipWithError(std::string(priced.status().message()).c_str());
  BareSignal bare;
  if (stack.kind == perfkit::CallStack::Kind::kLive && bare.opened()) {
    const auto [live, minimum] = PriceAll(state, priced, bare);
    // With few rounds, chance may be larger than the signal: then there is no ratio.
    if (minimum > 0) state.counters["to_bare_signal"] = live / minimum;
  } else {
    PriceAll(state, priced);
  }
  const perfkit::EventAccounting accounting = priced.accounting();
  const auto stacks = static_cast<double>(accounting.stacks.delivered), whole = static_cast<double>(priced.whole());
  state.counters["samples"] = static_cast<double>(accounting.accounted());
  state.counters["lost"] = static_cast<double>(accounting.lost);
  state.counters["copied"] = static_cast<double>(priced.copied_bytes()) / std::max<double>(1, accounting.delivered);
  if (stack.kind != perfkit::CallStack::Kind::kLive) return;
  if (accounting.stacks.accounted() != accounting.accounted()) state.SkipWithError("the accounting does not balance");
  state.counters["stacks"] = stacks;
  state.counters["cut"] = stacks == 0 ? 1 : (stacks - whole) / stacks;
}

void SampledThread(benchmark::State& state, const perfkit::CallStack& stack) {
  std::thread([&] { SampleHere(state, stack); }).join();
}
BENCHMARK_CAPTURE(SampledThread, none, perfkit::CallStack::None())->Name("Live/none")->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(SampledThread, dump, perfkit::CallStack::UserDump(16 << 10))
    ->Name("Live/dump16k")
    ->UseManualTime()
    ->Iterations(1);
void BareSignals(benchmark::State& state) {
  std::thread([&] {
    BareSignal bare;
    if (!bare.opened()) return state.SkipWithError("this kernel has no attr.sigtrap");
    PriceAll(state, bare);
  }).join();
}
BENCHMARK(BareSignals)->Name("Live/bare_signal")->UseManualTime()->Iterations(1);
BENCHMARK_CAPTURE(SampledThread, signal, perfkit::CallStack::Live(FlatWalker::Make))
    ->Name("Live/signal")
    ->UseManualTime()
    ->Iterations(1);
#if PERFKIT_BENCH_DWARF
BENCHMARK_CAPTURE(SampledThread, live, perfkit::CallStack::Live(perfkit::LiveStacks))
    ->Name("Live/handler")
    ->UseManualTime()
    ->Iterations(1);
#else
void WithoutDwarf(benchmark::State& state) { state.SkipWithError("live stacks need the component perfkit::dwarf"); }
BENCHMARK(WithoutDwarf)->Name("Live/handler");
#endif

}  // namespace
}  // namespace bench
