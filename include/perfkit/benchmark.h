// Counters in the tables of Google Benchmark (1.7.1 or newer), by one edit:
//
//   for (auto _ : perfkit::counted(state)) Parse(text);
//
//   Parse    812 ns   810 ns   863514 page-faults=0 cycles, instructions n/a (no PMU)
//
// Counters are chosen by PERFKIT_COUNTERS=cycles,page-faults in the environment, by an argument of `counted`, or by the
// flag --perfkit_counters=... if PERFKIT_BENCHMARK_MAIN() replaces BENCHMARK_MAIN(); otherwise they are
// instructions,cycles,page-faults. `allocations` and `allocated-bytes` require linking perfkit::testing_alloc, too.
// Counts are of the loop alone and for one iteration: the sum over all threads of a run, divided by the sum of their
// iterations. The measured cost of an empty loop is subtracted. PERFKIT_METRICS, --perfkit_metrics=... or an argument
// add columns for metrics (metric.h); the first two separate metrics by semicolons.
//
// Requires linking perfkit::benchmark, whose link options let perfkit observe PauseTiming and SetLabel. Without these
// options, pauses are counted, too, and the head of the report says so. Then the label set last wins: the note about
// missing events ("n/a ...") replaces a label set before the loop, and is replaced by one set after it.
#pragma once

#include "perfkit/detail/library_only.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/benchmark_region.h"

namespace perfkit {

// The counted loop of a benchmark, as `counted` returns it for a range-for. The end of the loop writes its columns to
// the state's counters, so that code after the loop finds them there; of a run's threads, on one thread only:
//
//   for (auto _ : perfkit::counted(state)) Parse(text);
//   const auto faults = state.counters.find("page-faults");
//
// A counter that the benchmark sets before or in the loop stays: a column of its name is left out, and the label says
// so.
class CountedLoop {
 public:
  // The type of `_`. Empty, and [[maybe_unused]] because the body of the loop does not use it.
  struct [[maybe_unused]] Value {};
  struct End {};
  class Iterator {
   public:
    Value operator*() const { return {}; }
    Iterator& operator++() {
      --left_;
      return *this;
    }
    // The whole cost of an iteration: one subtraction and one jump, as in the benchmark library's own loop.
    bool operator!=(End) const {
      if (left_ != 0) [[likely]]
        return true;
      if (loop_ != nullptr) loop_->Finish();
      return false;
    }

   private:
    friend class CountedLoop;
    Iterator(CountedLoop* loop, ::benchmark::IterationCount left) : loop_(loop), left_(left) {}
    CountedLoop* loop_;  // nullptr in RunEmpty, and for a skipped benchmark, whose loop has already ended.
    ::benchmark::IterationCount left_;
  };

  CountedLoop(::benchmark::State& state, std::optional<std::span<const EventSpec>> events,
              std::span<const std::string_view> metrics = {})
      : state_(state), region_(&state, events, {.empty = RunEmpty, .own_counters = OwnCounters}, metrics) {}
  CountedLoop(const CountedLoop&) = delete;
  CountedLoop& operator=(const CountedLoop&) = delete;

  // All iterations are one batch: the state's first KeepRunningBatch starts the clock, its second stops it. Both wait
  // for the other threads of the run.
  Iterator begin() {
    if (!state_.KeepRunningBatch(state_.max_iterations)) return {nullptr, 0};
    region_.Start();
    return {this, state_.max_iterations};
  }
  End end() const { return {}; }

 private:
  void Finish() {
    region_.Stop(state_.max_iterations);
    state_.KeepRunningBatch(state_.max_iterations);
    const std::optional<BenchmarkRow> row = region_.Leave();
    if (!row) return;
    for (const BenchmarkColumn& column : row->columns) state_.counters[column.name] = column.value;
    if (!row->label.empty()) state_.SetLabel(row->label);
  }

  // Runs an empty loop, to measure the cost of an iteration. Compiled in the user's program, because the cost depends
  // on the compiler's options: at -O0 it is ten times as high.
  static void RunEmpty(int64_t rounds) {
    for (Iterator i(nullptr, rounds); i != End(); ++i) asm volatile("");
  }

  static std::vector<std::string> OwnCounters(const void* state) {
    std::vector<std::string> names;
    for (const auto& counter : static_cast<const ::benchmark::State*>(state)->counters) names.push_back(counter.first);
    return names;
  }

  ::benchmark::State& state_;
  BenchmarkRegion region_;
};

// Returns `state`'s loop with the counters that the environment or the command line names.
inline CountedLoop counted(::benchmark::State& state) { return {state, std::nullopt}; }

// As above with these events: counted(state, {"page-faults", event::kInstructions}). Ignores the environment and the
// command line, also their metrics.
inline CountedLoop counted(::benchmark::State& state, std::initializer_list<EventSpec> events) {
  return {state, std::span<const EventSpec>(events.begin(), events.size())};
}

// As above with columns for metrics: counted(state, {"page-faults"}, {"ipc = instructions / cycles"}).
inline CountedLoop counted(::benchmark::State& state, std::initializer_list<EventSpec> events,
                           std::initializer_list<std::string_view> metrics) {
  return {state, std::span<const EventSpec>(events.begin(), events.size()),
          std::span<const std::string_view>(metrics.begin(), metrics.size())};
}

// As above with a list as in the environment: counted(state, "cycles,page-faults").
inline CountedLoop counted(::benchmark::State& state, std::string_view list) {
  const EventSpec events[] = {list};
  return {state, std::span<const EventSpec>(events)};
}

// The main of BENCHMARK_MAIN calls no function of perfkit, so the head of the report must be known before main runs. A
// static initialiser in the benchmark's own program adds it. PERFKIT_BENCHMARK_MAIN disables the initialiser, because
// its main reads flags first.
namespace detail {

// The original function of --wrap=State::PauseTiming. Null if the program is linked without that option.
[[gnu::weak]] void RealPauseTiming(::benchmark::State*) asm("__real__ZN9benchmark5State11PauseTimingEv");
// Defined by PERFKIT_BENCHMARK_MAIN.
extern "C" [[gnu::weak]] void perfkit_benchmark_own_main();

// For src/benchmark/adapter/wrap.cc, which must not depend on the layout of a State. Returns true if this one's loop
// has begun, or was skipped.
extern "C" [[gnu::weak, gnu::used, gnu::visibility("default")]] bool perfkit_benchmark_begun(const void* state) {
  // skipped() exists since 1.8. Unlike error_occurred(), it is also true after SkipWithMessage.
  const auto is_skipped = [](const auto& of) {
    if constexpr (requires { of.skipped(); }) {
      return of.skipped();
    } else {
      return of.error_occurred();
    }
  };
  const auto& of = *static_cast<const ::benchmark::State*>(state);
  return of.iterations() > 0 || is_skipped(of);
}

// The stock main will refuse the flag without saying what to do instead.
inline void ExplainRefusedFlag() {
  const std::string flag = BenchmarkArgument("--perfkit_");
  if (flag.empty()) return;
  std::fprintf(
      stderr,
      "perfkit: BENCHMARK_MAIN() does not know '%s': set PERFKIT_COUNTERS in the environment instead, or write "
      "PERFKIT_BENCHMARK_MAIN() in its place\n",
      flag.c_str());
}

inline bool AddBenchmarkContext() {
  const BenchmarkContext context = DescribeBenchmarks(&RealPauseTiming != nullptr);
  ::benchmark::AddCustomContext("perfkit", context.machine);
  ::benchmark::AddCustomContext("perfkit_counters", context.counters);
  ::benchmark::AddCustomContext("perfkit_pauses", context.pauses);
  return true;
}

inline const bool benchmark_context_added =
    &perfkit_benchmark_own_main == nullptr && (ExplainRefusedFlag(), AddBenchmarkContext());

inline void PrintBenchmarkHelp() {
  std::fputs(BenchmarkFlagsHelp(), stdout);
  ::benchmark::PrintDefaultHelp();
}

// The function with which 1.9.3's own main begins. Older versions lack it; then overload resolution finds this
// template.
namespace older {
template <class... Arguments>
void MaybeReenterWithoutASLR(Arguments...) {}
}  // namespace older
inline void ReenterWithoutAslr(int argc, char** argv) {
  using namespace ::benchmark;  // Both, so that overload resolution may choose.
  using namespace older;        // NOLINT
  MaybeReenterWithoutASLR(argc, argv);
}

inline int BenchmarkMain(int argc, char** argv) {
  ReenterWithoutAslr(argc, argv);
  const std::string wrong = TakeBenchmarkFlags(&argc, argv);
  if (!wrong.empty()) {
    std::fprintf(stderr, "%s\n", wrong.c_str());
    return 1;
  }
  ::benchmark::Initialize(&argc, argv, PrintBenchmarkHelp);
  if (::benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  AddBenchmarkContext();
  ::benchmark::RunSpecifiedBenchmarks();
  ::benchmark::Shutdown();
  return 0;
}

}  // namespace detail
}  // namespace perfkit

// Replaces BENCHMARK_MAIN(): also accepts --perfkit_counters=LIST and --perfkit_metrics=LIST, and exits with 1 if they
// have unknown names.
#define PERFKIT_BENCHMARK_MAIN()                                                           \
  extern "C" void perfkit_benchmark_own_main() {}                                          \
  int main(int argc, char** argv) { return ::perfkit::detail::BenchmarkMain(argc, argv); } \
  int main(int, char**)
