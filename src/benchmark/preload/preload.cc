// Counters in an unchanged benchmark program: libperfkit_benchmark_preload.so, by LD_PRELOAD.
//
// Google Benchmark's header calls some members of State that its shared library exports. This library exports them too,
// and is loaded first, so its functions are called instead. Each does its work and calls the next function of its name:
//
//   program ── State::StartKeepRunning ──> here: open a region ──> libbenchmark: barrier, timer ──> here: Start
//   program ── State::FinishKeepRunning ─> here: Stop ──> libbenchmark: timer, barrier ──> here: Leave, columns, label
//
// It accesses members of State (its counters and its progress). So it serves only versions whose layout is known
// (library.h), and reports all others.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "perfkit/benchmark_region.h"
#include "src/benchmark/preload/library.h"

namespace {

using benchmark::State;
using perfkit::BenchmarkRegion;
using perfkit::preload::Next;
using perfkit::preload::ProgramLibrary;

// This file is compiled with a header that has the layout that WhyNotServed accepts. With pointers of 4 bytes the
// layout is another one, and the same in all versions.
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
#define PERFKIT_ERROR_CHARS "_ZN9benchmark5State13SkipWithErrorEPKc"
#define PERFKIT_ERROR_STRING "_ZN9benchmark5State13SkipWithErrorERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
#define PERFKIT_SKIP_STRING \
  "_ZN9benchmark5State15SkipWithMessageERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

using Member = void(State*);

// The region of the loop on the calling thread.
std::unique_ptr<BenchmarkRegion>& Region() {
  thread_local std::unique_ptr<BenchmarkRegion> region;
  return region;
}

std::vector<std::string> OwnCounters(const void* state) {
  std::vector<std::string> names;
  for (const auto& counter : static_cast<const State*>(state)->counters) names.push_back(counter.first);
  return names;
}

// A range-for does not update iterations() before its end, and always runs all of them.
int64_t Iterations(const State& state) { return state.iterations() > 0 ? state.iterations() : state.max_iterations; }

// A label from inside a range-for, which does not update iterations(), is taken for one from before the loop: it gets
// the note in Report. So is a label that is set after a skip before the loop: if that loop is never reached, the
// row of the next run has that label, too, if it has a note.
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

// Adds the head of the report, or the reason for its absence, before main. Prints nothing in programs that are no
// benchmarks: shells, env, time and the like inherit LD_PRELOAD, and have a benchmark's arguments among their own.
[[gnu::constructor]] void AddContext() {
  if (!ProgramLibrary().found) {
    if (perfkit::preload::HasStaticLibrary()) {
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

// A static initialiser of <benchmark/benchmark.h> calls InitializeStreams, which a program without Google Benchmark
// does not have. This library is linked with --wrap of it, so the call ends here.
int perfkit_no_streams() asm("__wrap__ZN9benchmark8internal17InitializeStreamsEv");
int perfkit_no_streams() { return 0; }

#define PERFKIT_EXPORT [[gnu::visibility("default")]]
PERFKIT_EXPORT void perfkit_start(State* state) asm(PERFKIT_START);
PERFKIT_EXPORT void perfkit_finish(State* state) asm(PERFKIT_FINISH);
PERFKIT_EXPORT void perfkit_pause(State* state) asm(PERFKIT_PAUSE);
PERFKIT_EXPORT void perfkit_resume(State* state) asm(PERFKIT_RESUME);
PERFKIT_EXPORT void perfkit_label_chars(State* state, const char* label) asm(PERFKIT_LABEL_CHARS);
PERFKIT_EXPORT void perfkit_label_string(State* state, const std::string& label) asm(PERFKIT_LABEL_STRING);
PERFKIT_EXPORT void perfkit_error_chars(State* state, const char* why) asm(PERFKIT_ERROR_CHARS);
PERFKIT_EXPORT void perfkit_error_string(State* state, const std::string& why) asm(PERFKIT_ERROR_STRING);
PERFKIT_EXPORT void perfkit_skip_string(State* state, const std::string& why) asm(PERFKIT_SKIP_STRING);

void perfkit_start(State* state) {
  static Member* const next = Next<Member>(PERFKIT_START, __builtin_return_address(0));
  if (!ProgramLibrary().served()) return next(state);
  BenchmarkRegion::Begin();
  Region().reset();  // A run that was left by an error still has its events open.
  Region() =
      std::make_unique<BenchmarkRegion>(state, std::nullopt, perfkit::BenchmarkLoop{.own_counters = OwnCounters});
  next(state);
  Region()->Start();
}

void perfkit_finish(State* state) {
  static Member* const next = Next<Member>(PERFKIT_FINISH, __builtin_return_address(0));
  if (Region() != nullptr) Region()->Stop(Iterations(*state));
  next(state);
  if (Region() == nullptr) return;
  Report(state);
  BenchmarkRegion::End();
}

// The library itself calls these two during start and finish, when no region is between its Start and Stop.
void perfkit_pause(State* state) {
  static Member* const next = Next<Member>(PERFKIT_PAUSE, __builtin_return_address(0));
  BenchmarkRegion::Pause(state);
  next(state);
}

void perfkit_resume(State* state) {
  static Member* const next = Next<Member>(PERFKIT_RESUME, __builtin_return_address(0));
  next(state);
  BenchmarkRegion::Resume(state);
}

void perfkit_label_chars(State* state, const char* label) {
  static auto* const next = Next<void(State*, const char*)>(PERFKIT_LABEL_CHARS, __builtin_return_address(0));
  SetLabel(state, label, [](void* of, const std::string& text) { next(static_cast<State*>(of), text.c_str()); });
}

void perfkit_label_string(State* state, const std::string& label) {
  static auto* const next = Next<void(State*, const std::string&)>(PERFKIT_LABEL_STRING, __builtin_return_address(0));
  SetLabel(state, label, [](void* of, const std::string& text) { next(static_cast<State*>(of), text); });
}

void perfkit_error_chars(State* state, const char* why) {
  static auto* const next = Next<void(State*, const char*)>(PERFKIT_ERROR_CHARS, __builtin_return_address(0));
  next(state, why);
  BenchmarkRegion::End();
}

void perfkit_error_string(State* state, const std::string& why) {
  static auto* const next = Next<void(State*, const std::string&)>(PERFKIT_ERROR_STRING, __builtin_return_address(0));
  next(state, why);
  BenchmarkRegion::End();
}

void perfkit_skip_string(State* state, const std::string& why) {
  static auto* const next = Next<void(State*, const std::string&)>(PERFKIT_SKIP_STRING, __builtin_return_address(0));
  next(state, why);
  BenchmarkRegion::End();
}

}  // extern "C"
