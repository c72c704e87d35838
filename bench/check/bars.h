// The bars: how much a case of perfkit's may cost, as a multiple of another case in the same run, or in nanoseconds; or
// what a counter of it may be.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/check/results.h"

namespace bench {

// A `*` in both names stands for the same word, a workload. Such a bar holds all workloads together: the geometric mean
// of their ratios, or the largest of their counters; of kMinWorkloads at least.
struct Bar {
  const char* name;   // of the case that is held
  const char* floor;  // of the case that it is compared with; nullptr: with none
  double limit;       // a ratio; without a floor nanoseconds, or what the counter counts
  const char* what;   // in words
  // Which of the sorted repetitions are compared: the medians, or, where a limit near 1 meets a clock rate that jumps,
  // the least, which were not disturbed.
  double quantile = 0.5;
  const char* counter = nullptr;  // of the case, in the place of its time; without a floor
};
constexpr size_t kMinWorkloads = 5;

// Whether `name` is `pattern`, with any word in the place of its `*`.
bool Matches(std::string_view pattern, std::string_view name);

// How a run is made.
struct Method {
  int repetitions = 0;
  double min_seconds = 0;  // of each
};

// One program of bench/, all in one run.
struct Suite {
  const char* program;
  Method method;
  std::span<const Bar> bars;
  std::span<const char* const> names;  // every name that a run must have: anyone may rely on them to compare with
  const char* arguments = "";          // of its own, in a full run
};
std::span<const Suite> Suites();

struct Judged {
  const Bar* bar;
  // Of the quantiles, or nanoseconds, or the counter; nothing: one of the two was not measured.
  std::optional<double> ratio;
  bool holds() const { return ratio && *ratio <= bar->limit; }
};
std::vector<Judged> Judge(const Results& results, std::span<const Bar> bars);

}  // namespace bench
