// A task of ITT-annotated code, through the pointers that the collector has stored, as ittnotify's macros call them.
#include <cstdlib>
#include <string>

#include "bench/support/events.h"
#include "tests/itt/static_part.h"

namespace bench {
namespace {

#ifndef PERFKIT_BENCH_ITT
#define PERFKIT_BENCH_ITT "libperfkit_itt.so"  // Not built: the case says that it cannot be loaded.
#endif

// The functions of the collector, which counts the four events. It is loaded once, as in a program; its table is of no
// interest.
struct LoadedCollector {
  LoadedCollector() {
    setenv("PERFKIT_ITT", "/dev/null", 1);
    setenv("PERFKIT_ITT_COUNTERS", "task-clock,page-faults,context-switches,cpu-migrations", 1);
    error = part.Load(PERFKIT_BENCH_ITT);
    if (error.empty() && part.calls.task_begin == nullptr) error = "the collector has stored no functions";
  }
  perfkit::itt::StaticPart part;
  std::string error;
};

// The pair within another task, as Zone/pair_fast is within a frame; `outermost`: not within another one, which
// publishes the thread's counts each time.
void IttTask(benchmark::State& state, bool outermost) {
  static const LoadedCollector collector;
  if (!collector.error.empty()) return state.SkipWithError(collector.error.c_str());
  const perfkit::itt::Calls& calls = collector.part.calls;
  static perfkit::itt::Domain domain{.flags = 1, .name = "bench"};
  static perfkit::itt::StringHandle outer{.text = "outer"}, task{.text = "task"};
  if (!outermost) calls.task_begin(&domain, {}, {}, &outer);
  for (auto _ : state) {
    if (domain.flags != 0) calls.task_begin(&domain, {}, {}, &task);
    benchmark::ClobberMemory();
    if (domain.flags != 0) calls.task_end(&domain);
  }
  if (!outermost) calls.task_end(&domain);
}
BENCHMARK_CAPTURE(IttTask, inner, false)->Name("Zone/itt");
BENCHMARK_CAPTURE(IttTask, outermost, true)->Name("Zone/itt_outermost");

}  // namespace
}  // namespace bench
