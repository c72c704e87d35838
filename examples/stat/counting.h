// Counts the same events on several targets, and sums them.
#pragma once

#include <perfkit/counter.h>
#include <perfkit/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace stat_tool {

// One event, over all targets.
struct Row {
  perfkit::TableRow cells;       // what a table says
  std::string event;             // the event's name, with the modifier 'u' if it was restricted to user space
  std::optional<double> spread;  // standard error of the mean of several runs, as a fraction of it
};

// What was counted in an interval.
struct Measurement {
  double ended_s = 0;    // seconds after counting began
  uint64_t wall_ns = 0;  // how long it took
  std::optional<double> wall_spread;
  int runs = 1;  // of which this is the mean
  std::vector<Row> rows;
};

class Counting {
 public:
  // Errors: those of CounterSet::Open; the reason of the first event if no event can be counted.
  static absl::StatusOr<Counting> Open(const std::string& events, const std::vector<perfkit::Target>& targets);

  // Returns what was counted since the last call, or since Open, without its times.
  std::vector<Row> Take();

  // The first target's: how it reads each event.
  const perfkit::CounterSet& set() const { return sets_.front(); }

 private:
  std::vector<perfkit::CounterSet> sets_;  // one a target
  std::vector<perfkit::Snapshot> last_;
};

// Returns the means over runs, with their spread. Without a number in each run an event has no mean. Requires at least
// one run, which is its own mean.
Measurement Mean(const std::vector<Measurement>& runs);

}  // namespace stat_tool
