// The bars: the maximum cost of a case of perfkit's, as a multiple of another case in the same run or in nanoseconds,
// or the limit of one of its counters.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/check/results.h"

namespace bench {

// A `*` in both names stands for the same word, a workload. Such a bar judges all workloads together, at least
// kMinWorkloads of them: by the geometric mean of their ratios, or the largest of their counters. If one of them, other
// than `without`, was not measured, the bar does not hold.
struct Bar {
  const char* name;   // Of the judged case.
  const char* floor;  // Of the case that it is compared with; nullptr means none.
  double limit;       // A ratio; without a floor, nanoseconds or the unit of the counter.
  const char* what;   // In words.
  // Which of the sorted repetitions are compared: the medians, or the minima (which were not disturbed) for a limit
  // near 1 on a machine with a varying clock rate.
  double quantile = 0.5;
  const char* counter = nullptr;  // A counter of the case, instead of its time; without a floor.
  // A workload that `*` does not stand for, because the floor gives other results. `what` names it. nullptr means none.
  const char* without = nullptr;
};
constexpr size_t kMinWorkloads = 5;

// Returns true if `name` is `pattern` with any word instead of its `*`.
bool Matches(std::string_view pattern, std::string_view name);

// How a suite is run.
struct Method {
  int repetitions = 0;
  double min_seconds = 0;  // For each repetition.
};

// One program of bench/, in one run.
struct Suite {
  const char* program;
  Method method;
  std::span<const Bar> bars;
  std::span<const char* const> names;  // All names that a run must have, as they are a contract.
  const char* arguments = "";          // The suite's own, in a full run.
};
std::span<const Suite> Suites();

struct Judged {
  const Bar* bar;
  // Of the quantiles, in nanoseconds, or of the counter; nullopt if a side was not measured.
  std::optional<double> ratio;
  bool holds() const { return ratio && *ratio <= bar->limit; }
};
std::vector<Judged> Judge(const Results& results, std::span<const Bar> bars);

}  // namespace bench
