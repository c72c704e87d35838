// The bars: how much a case of perfkit's may cost, as a multiple of another case in the same run, or in nanoseconds.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/check/results.h"

namespace bench {

struct Bar {
  const char* name;   // of the case that is held
  const char* floor;  // of the case that it is compared with; nullptr: with none
  double limit;       // a ratio; without a floor nanoseconds
  const char* what;   // in words
  // Which of the sorted repetitions are compared: the medians, or, where a limit near 1 meets a clock rate that jumps,
  // the least, which were not disturbed.
  double quantile = 0.5;
};

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
  std::optional<double> ratio;  // of the quantiles, or nanoseconds; nothing: one of the two was not measured
  bool holds() const { return ratio && *ratio <= bar->limit; }
};
std::vector<Judged> Judge(const Results& results, std::span<const Bar> bars);

}  // namespace bench
