// Adds up the threads of a run.
//
// Google Benchmark adds the counters of a run's threads by name. Names here depend on what the numbers are worth, and
// that may differ from thread to thread, so perfkit adds by itself and lets one thread write:
//
//   each thread:  Stop ── Arrive ──┐ barrier ┌── Leave ── the first one gets the columns, all get the note
//                                  │ of the  │            the last one clears the sum of the run
//   each thread:  Stop ── Arrive ──┘ library └── Leave
//
// The threads of a run also share its label: the library keeps the last that any of them sets, and cannot be asked for
// it, so whoever sees SetLabel tells the sum of the run.
//
// One run is under way at a time in a process: the library runs its benchmarks one by one.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/benchmark_region.h"

namespace perfkit::adapter {

// One event of one thread, or of all threads.
struct Tally {
  std::string name;     // the column's, if it gets one
  std::string why_not;  // "": `value` holds
  double value = 0;     // scaled, without the loop's own part
  uint64_t enabled_ns = 0, running_ns = 0;
  int threads = 1;
};

// The row of a run of `iterations` in all on `threads` threads. An event that one of them lacks has no column: a sum
// with a hole is no sum.
BenchmarkRow MakeRow(const std::vector<Tally>& tallies, int64_t iterations, int threads);

// A label and a note in one text; without one of them the other.
std::string JoinLabel(const std::string& label, const std::string& note);

class RunSum {
 public:
  // The timer still runs: what can wait is left to the first Leave.
  void Arrive(int64_t iterations, std::vector<Tally> tallies);
  // After all have arrived. Once for each Arrive.
  BenchmarkRow Leave();

  // A thread begins its loop, or has ended it.
  void Begin();
  void End();
  // A thread sets the row's label; null: as it is. Calls `set` with it and the note. `begun`: in or after its loop.
  void SetLabel(const std::string* label, const std::string& note, bool begun,
                absl::FunctionRef<void(const std::string&)> set);

 private:
  std::mutex mutex_;
  std::vector<std::vector<Tally>> arrived_;
  std::string note_;  // once the first has left
  int64_t iterations_ = 0;
  size_t left_ = 0;
  std::string label_;   // as the benchmark set it
  bool ahead_ = false;  // it was set before the loop: Begin must keep it
};

}  // namespace perfkit::adapter
