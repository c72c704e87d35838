// Counters in a benchmark program that nobody edited: libperfkit_benchmark_preload.so, by LD_PRELOAD.
//
// Google Benchmark's header calls a few members of State that its shared library exports. This library exports them too
// and, being loaded first, is called instead; each does its part and calls the next one of its name:
//
//   program ── State::StartKeepRunning ──> here: open a region ──> libbenchmark: barrier, timer ──> here: Start
//   program ── State::FinishKeepRunning ─> here: Stop ──> libbenchmark: timer, barrier ──> here: Leave, columns, label
//
// It looks into a State (its counters and its progress), so it serves only versions whose layout it knows (library.h),
// and says so where it does not.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>

#include "perfkit/benchmark_region.h"
#include "src/benchmark/preload/library.h"

namespace {

using benchmark::State;
using perfkit::BenchmarkRegion;
using perfkit::preload::Next;
using perfkit::preload::ProgramLibrary;

// The header that this is compiled with has the layout that WhyNotServed tells of. Where pointers have 4 bytes it is
// another one, and the same in all versions.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(sizeof(void*) != 8 || offsetof(State, counters) == 64,
              "State differs from 1.5.0 to 1.9.5: see library.h");
#pragma GCC diagnostic pop

#define PERFKIT_START "_ZN9benchmark5State16StartKeepRunningEv"
#define PERFKIT_FINISH "_ZN9benchmark5State17FinishKeepRunningEv"
#define PERFKIT_PAUSE "_ZN9benchmark5State11PauseTimingEv"
#define PERFKIT_RESUME "_ZN9benchmark5State12ResumeTimingEv"
#define PERFKIT_LABEL_CHARS "_ZN9benchmark5State8SetLabelEPKc"
#define PERFKIT_LABEL_STRING "_ZN9benchmark5State8SetLabelERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

using Member = void(State*);

// The region of the loop that the calling thread is in.
std::unique_ptr<BenchmarkRegion>& Region() {
  thread_local std::unique_ptr<BenchmarkRegion> region;
  return region;
}

// A range-for does not tell its progress, so that iterations() is 0 before the end; it always runs all of them.
int64_t Iterations(const State& state) { return state.iterations() > 0 ? state.iterations() : state.max_iterations; }

void SetLabel(State* state, const std::string& label, void (*set)(void* state, const std::string& label)) {
  if (!ProgramLibrary().served()) return set(state, label);
  BenchmarkRegion::SetLabel(state, label, state->iterations() > 0, set);
}

void Report(State* state) {
  const std::optional<perfkit::BenchmarkRow> row = Region()->Leave();
  Region().reset();
  if (!row) return;
  for (const perfkit::BenchmarkColumn& column : row->columns) state->counters[column.name] = column.value;
  if (row->label.empty()) return;
  SetLabel(state, row->label, perfkit::preload::SetLabel);
}

// The head of the report, before main; or why there will be none. Most programs that a preloaded shell starts are no
// benchmarks, and must not notice.
[[gnu::constructor]] void AddContext() {
  if (!ProgramLibrary().found) {
    if (!perfkit::BenchmarkArgument("--benchmark_").empty()) {
      std::fputs("perfkit: no counters: this program does not link Google Benchmark as a shared library\n", stderr);
    }
    return;
  }
  if (!ProgramLibrary().served()) {
    std::fprintf(stderr, "perfkit: no counters: %s\n", ProgramLibrary().why_not.c_str());
    return;
  }
  const perfkit::BenchmarkContext context = perfkit::DescribeBenchmarks(true);
  perfkit::preload::AddContext("perfkit", context.machine);
  perfkit::preload::AddContext("perfkit_counters", context.counters);
  perfkit::preload::AddContext("perfkit_pauses", context.pauses);
}

}  // namespace

extern "C" {

// Including <benchmark/benchmark.h> calls this before main, and a program need not have it: linked with --wrap.
int perfkit_no_streams() asm("__wrap__ZN9benchmark8internal17InitializeStreamsEv");
int perfkit_no_streams() { return 0; }

#define PERFKIT_EXPORT [[gnu::visibility("default")]]
PERFKIT_EXPORT void perfkit_start(State* state) asm(PERFKIT_START);
PERFKIT_EXPORT void perfkit_finish(State* state) asm(PERFKIT_FINISH);
PERFKIT_EXPORT void perfkit_pause(State* state) asm(PERFKIT_PAUSE);
PERFKIT_EXPORT void perfkit_resume(State* state) asm(PERFKIT_RESUME);
PERFKIT_EXPORT void perfkit_label_chars(State* state, const char* label) asm(PERFKIT_LABEL_CHARS);
PERFKIT_EXPORT void perfkit_label_string(State* state, const std::string& label) asm(PERFKIT_LABEL_STRING);

void perfkit_start(State* state) {
  static Member* const next = Next<Member>(PERFKIT_START);
  if (!ProgramLibrary().served()) return next(state);
  BenchmarkRegion::Begin();
  Region() = std::make_unique<BenchmarkRegion>(state, std::nullopt);
  next(state);
  Region()->Start();
}

void perfkit_finish(State* state) {
  static Member* const next = Next<Member>(PERFKIT_FINISH);
  if (Region() != nullptr) Region()->Stop(Iterations(*state));
  next(state);
  if (Region() == nullptr) return;
  Report(state);
  BenchmarkRegion::End();
}

// The library calls these two itself, from within start and finish: then no region is between its Start and Stop.
void perfkit_pause(State* state) {
  static Member* const next = Next<Member>(PERFKIT_PAUSE);
  BenchmarkRegion::Pause(state);
  next(state);
}

void perfkit_resume(State* state) {
  static Member* const next = Next<Member>(PERFKIT_RESUME);
  next(state);
  BenchmarkRegion::Resume(state);
}

void perfkit_label_chars(State* state, const char* label) {
  static auto* const next = Next<void(State*, const char*)>(PERFKIT_LABEL_CHARS);
  SetLabel(state, label, [](void* of, const std::string& text) { next(static_cast<State*>(of), text.c_str()); });
}

void perfkit_label_string(State* state, const std::string& label) {
  static auto* const next = Next<void(State*, const std::string&)>(PERFKIT_LABEL_STRING);
  SetLabel(state, label, [](void* of, const std::string& text) { next(static_cast<State*>(of), text); });
}

}  // extern "C"
