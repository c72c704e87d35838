// Adds up the threads of a run.
//
// Google Benchmark adds the counters of a run's threads by name. The names here depend on the quality of the numbers,
// which may differ between threads. So perfkit adds them up itself, and one thread writes the sum:
//
//   each thread:  Stop ── Arrive ──┐ barrier ┌── Leave ── the first one gets the columns, all get the note
//                                  │ of the  │            the last one clears the sum of the run
//   each thread:  Stop ── Arrive ──┘ library └── Leave
//
// The library also adds what the benchmark itself has set in the counters of any thread. So a column that has the name
// of such a counter is left out: the sum of the two would be neither.
//
// The threads of a run also share its label: the library keeps the last one that any of them sets, and cannot be asked
// for it. So the hook of SetLabel passes each label to RunSum.
//
// A process has one run at a time: the library runs its benchmarks one by one.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/benchmark_region.h"
#include "src/benchmark/adapter/choice.h"

namespace perfkit::adapter {

// One event of one thread, or summed over all threads.
struct Tally {
  std::string name;     // Name of its column, if it gets one.
  std::string why_not;  // "" if `value` is valid.
  double value = 0;     // Scaled, without the loop's own cost.
  uint64_t enabled_ns = 0, running_ns = 0;
  int threads = 1;
  std::string event{};       // As it was written: its name in metrics.
  bool user_only = false;    // Counted in user space only, although its name does not say so.
  bool for_metrics = false;  // Has no column.
  bool of_machine = false;   // The whole machine's: each thread of a run counts the same.
};

// Returns the row of a run of `iterations` in all on `threads` threads. An event that one thread lacks has no column,
// as its sum would be incomplete. Metrics are of the sums for one iteration. No column has a name of `own`, those of
// the benchmark's own counters.
BenchmarkRow MakeRow(const std::vector<Tally>& tallies, int64_t iterations, int threads,
                     std::span<const WantedMetric> metrics = {}, std::span<const std::string> own = {});

// Joins a label and a note in one text; if one is empty, returns the other.
std::string JoinLabel(const std::string& label, const std::string& note);

class RunSum {
 public:
  // The benchmark's timer still runs here, so most of the work is left to the first Leave. The metrics of a run are
  // those of its first thread. `own` has the names of the counters that the benchmark has set on this thread.
  void Arrive(int64_t iterations, std::vector<Tally> tallies, std::vector<WantedMetric> metrics = {},
              std::vector<std::string> own = {});
  // Call it once for each Arrive, after all of them.
  BenchmarkRow Leave();

  // A thread begins, or has ended, its loop. End also if it skips its benchmark, whose loop may not begin, or not end.
  void Begin();
  void End();
  // A thread sets the row's label; nullptr keeps it. Calls `set` with it and the note. `begun`: the thread is in or
  // after its loop, or has skipped its benchmark.
  void SetLabel(const std::string* label, const std::string& note, bool begun,
                absl::FunctionRef<void(const std::string&)> set);

 private:
  std::mutex mutex_;
  std::vector<std::vector<Tally>> arrived_;
  std::vector<WantedMetric> metrics_;
  std::vector<std::string> own_;  // Of all threads.
  std::string note_;              // Set by the first Leave.
  int64_t iterations_ = 0;
  size_t left_ = 0;
  std::string label_;   // As the benchmark set it.
  bool ahead_ = false;  // The label was set before the loop: Begin must keep it.
};

}  // namespace perfkit::adapter
