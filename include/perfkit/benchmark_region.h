// What a benchmark's loop cost, for adapters: the half of benchmark.h that knows nothing of Google Benchmark.
//
// A benchmark library and its user must agree on the layout of its State; perfkit is compiled apart from both. So this
// half sees a State as an address only, and whoever includes the benchmark library's own header hands it the numbers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/event_type.h"

namespace perfkit {

// A measured number, an iteration. The name says what it is: "page-faults" is exact, "page-faults:u" leaves out the
// kernel's own, "cycles(scaled)" is an estimate and has a column "cycles(covered%)" beside it. A unit stands in
// brackets: "task-clock[ns]".
struct BenchmarkColumn {
  std::string name;
  double value;
};

// All that one run has to say, of all its threads together.
struct BenchmarkRow {
  std::vector<BenchmarkColumn> columns;  // empty on all threads of a run but one, so that they can be added up
  std::string note;                      // what has no number, and why: "cycles, instructions n/a (no PMU)"; or ""
  std::string label;                     // on that thread: the benchmark's own label and the note; "" without a note
};

// What only those know who compiled the benchmark library's header.
struct BenchmarkLoop {
  // `rounds` of the loop around nothing, as the user's compiler made it: its cost is taken off. Null: one of ours.
  void (*empty)(int64_t rounds) = nullptr;
};

// Which events: those of PERFKIT_COUNTERS in the environment, else "instructions,cycles,page-faults". Spelled as
// ParseEventList takes them, and "allocations".
std::string BenchmarkCounters();

// Lines for the head of a report, before anything ran: where the numbers come from, and what each event is worth on
// the calling thread. `pauses_seen`: PauseTiming tells its region (below).
struct BenchmarkContext {
  std::string machine, counters, pauses;
};
BenchmarkContext DescribeBenchmarks(bool pauses_seen);

// "" when each event of `list` has a meaning; else what is wrong with the first that has none.
std::string CheckBenchmarkCounters(const std::string& list);

// Takes `--perfkit_counters=LIST` out of argv and puts LIST into the environment as PERFKIT_COUNTERS. What is wrong
// with it, or "". Call it before the first thread starts.
std::string TakeBenchmarkFlags(int* argc, char** argv);
const char* BenchmarkFlagsHelp();
// The first argument of this process that starts with `prefix`, or "": for those who are called before main.
std::string BenchmarkArgument(std::string_view prefix);

// The counters of one thread in one run. Opened before the loop, closed after it; between Start and Stop it is for its
// own thread only. Never fails: what can't be counted is in the note.
class BenchmarkRegion {
 public:
  // `state` tells runs of one thread apart and is never followed. Without `events`: BenchmarkCounters().
  BenchmarkRegion(const void* state, std::optional<std::span<const EventSpec>> events, const BenchmarkLoop& loop = {});
  ~BenchmarkRegion();
  BenchmarkRegion(const BenchmarkRegion&) = delete;
  BenchmarkRegion& operator=(const BenchmarkRegion&) = delete;

  // Around the loop. Stop also hands this thread's numbers to the run: call it before the barrier at which the threads
  // of a run wait for each other, and Leave after it, so that Leave sees all threads.
  void Start() noexcept;
  void Stop(int64_t iterations) noexcept;

  // What the run has to say; nothing for a thread that never stopped (a benchmark that broke off).
  std::optional<BenchmarkRow> Leave();

  // The region that the calling thread is in, if it is of `state`: for those who see PauseTiming and ResumeTiming.
  // Both ignore what is not between Start and Stop.
  static void Pause(const void* state) noexcept;
  static void Resume(const void* state) noexcept;

  // The calling thread begins a loop, any loop, and has ended it: for those who see StartKeepRunning and
  // FinishKeepRunning. What was noted of the run before is over.
  static void Begin() noexcept;
  static void End() noexcept;
  // Calls `set` with `state` and what to set as label when the benchmark, or its region, sets `label`. A row has one
  // label, which is also where the note must stand: a label from before the loop is kept for BenchmarkRow::label, one
  // from after it gets the note of the loop. One thread at a time, as the last label that is set stays: `set` must not
  // come back here. `begun`: the state's loop has begun. States of successive runs lie at one address, so that only
  // they can tell.
  static void SetLabel(void* state, const std::string& label, bool begun,
                       void (*set)(void* state, const std::string& label));

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfkit
