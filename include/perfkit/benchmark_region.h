// Counts the loop of a benchmark: the half of benchmark.h that does not depend on Google Benchmark.
//
// A benchmark library and its user must agree on the layout of State; perfkit is compiled apart from both. So this half
// sees a State as an address only, and the half that includes the benchmark library's header passes the numbers.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfkit/event_type.h"

namespace perfkit {

// A measured number for one iteration. Its name says its quality: "page-faults" is exact, "page-faults:u" excludes the
// kernel's own faults, "cycles(scaled)" is an estimate with a column "cycles(covered%)" beside it. A unit is in
// brackets: "task-clock[ns]". Metrics have the same marks: "ipc(scaled)".
struct BenchmarkColumn {
  std::string name;
  double value;
};

// The result of one run, for all its threads together.
struct BenchmarkRow {
  std::vector<BenchmarkColumn> columns;  // Empty on all threads of a run but one, so that the library may add them up.
  // The events and metrics without a column, and why: "cycles, instructions n/a (no PMU)"; or "". Of a long reason that
  // DescribeBenchmarks has given already: "allocations n/a (see perfkit_counters)". A column is left out, too, if the
  // benchmark has a counter of its name: the library would add the two up.
  std::string note;
  std::string label;  // On the thread with columns: the benchmark's own label and the note; "" without a note.
};

// The part that must be compiled with the benchmark library's header.
struct BenchmarkLoop {
  // Runs `rounds` iterations of an empty loop, as the user's compiler made it; its cost is subtracted. nullptr means a
  // loop of perfkit's own.
  void (*empty)(int64_t rounds) = nullptr;
  // Returns the names of the counters that the benchmark itself has set in `state`; nullptr means none. Called by Stop.
  std::vector<std::string> (*own_counters)(const void* state) = nullptr;
};

// Returns the events of PERFKIT_COUNTERS in the environment, or else "instructions,cycles,page-faults": a list for
// ParseEventList.
std::string BenchmarkCounters();
// Returns PERFKIT_METRICS from the environment, or "". It is a list, separated by semicolons, of texts for
// Metric::Parse (metric.h) and names of sets (metric_set.h).
std::string BenchmarkMetrics();

// Lines for the head of a report, before any benchmark runs: the source of the numbers, and the quality of each event
// on the calling thread.
struct BenchmarkContext {
  std::string machine, counters, pauses;
};
// `pauses_seen`: true if PauseTiming calls Pause (below).
BenchmarkContext DescribeBenchmarks(bool pauses_seen);

// Return "" if all events, or metrics, of `list` are known; otherwise the error of the first one that is not. A metric
// that has the name of a column, of BenchmarkCounters() or of another metric, is an error, too.
std::string CheckBenchmarkCounters(const std::string& list);
std::string CheckBenchmarkMetrics(const std::string& list);

// Removes `--perfkit_counters=LIST` and `--perfkit_metrics=LIST` from argv, and sets PERFKIT_COUNTERS and
// PERFKIT_METRICS to LIST in the environment. Returns the first error, or ""; after an error, flags may stay in argv.
// Call it before the first thread starts.
std::string TakeBenchmarkFlags(int* argc, char** argv);
// Returns the --help text of these flags, valid for the whole process.
const char* BenchmarkFlagsHelp();
// Returns the first argument of this process that starts with `prefix`, or "". For callers that run before main.
std::string BenchmarkArgument(std::string_view prefix);

// The counters of one thread in one run. Never fails: the note names the events that can't be counted. Use it on the
// thread that constructed it: a loop that ends on another thread has no counts. The static functions may be called on
// any thread: Pause and Resume act on the calling thread's region, Begin, End and SetLabel on the run.
class BenchmarkRegion {
 public:
  // `state` is what Pause, Resume and SetLabel get on this thread; it is never dereferenced. A process has one run at a
  // time: all regions from its first Stop to its last Leave belong to it, so each thread that has called Stop must call
  // Leave. Without `events` counts BenchmarkCounters() and adds BenchmarkMetrics(); with them, PERFKIT_COUNTERS and
  // PERFKIT_METRICS are ignored. `metrics` are added in both cases. Events that only metrics need get no columns.
  BenchmarkRegion(const void* state, std::optional<std::span<const EventSpec>> events, const BenchmarkLoop& loop = {},
                  std::span<const std::string_view> metrics = {});
  ~BenchmarkRegion();
  BenchmarkRegion(const BenchmarkRegion&) = delete;
  BenchmarkRegion& operator=(const BenchmarkRegion&) = delete;

  // Start and Stop enclose the loop; `iterations` is the number of rounds of this thread. Stop also adds this thread's
  // counts to the run. Call Stop before the barrier at which the threads of a run wait for each other, and Leave after
  // the barrier, so that Leave sees the counts of all threads.
  void Start() noexcept;
  void Stop(int64_t iterations) noexcept;

  // Returns the row of the run. Returns nullopt on a thread that never stopped (a benchmark that was skipped with an
  // error).
  std::optional<BenchmarkRow> Leave();

  // Stop and continue counting in the calling thread's region, if it belongs to `state`. For hooks of PauseTiming and
  // ResumeTiming. Both do nothing outside of Start and Stop.
  static void Pause(const void* state) noexcept;
  static void Resume(const void* state) noexcept;

  // Mark that the calling thread begins, or has ended, the loop of any benchmark. For hooks of StartKeepRunning and
  // FinishKeepRunning. A benchmark that is skipped may not reach the end of its loop, so the hooks of SkipWithError and
  // SkipWithMessage call End, too. Begin forgets the note and label of the previous run.
  static void Begin() noexcept;
  static void End() noexcept;
  // Adds the note of missing events to the label that a benchmark sets, because a row has one label. For hooks of
  // State::SetLabel: calls `set(state, text)` once. Before Leave, the note is not known: `text` is `label`, and
  // BenchmarkRow::label will have both. After Leave, `text` has both.
  //
  // `begun`: true if the loop of `state` has begun or was skipped; a State of the next run may have the same address.
  // Thread-safe: `set` is called on one thread at a time, and the label of the last call stays. `set` must not call
  // SetLabel. Allocates.
  static void SetLabel(void* state, const std::string& label, bool begun,
                       void (*set)(void* state, const std::string& label));

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfkit
