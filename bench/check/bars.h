// The bars: how much a case of perfkit's may cost, as a multiple of another case in the same run.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "bench/check/results.h"

namespace bench {

struct Bar {
  const char* name;   // of the case that is held
  const char* floor;  // of the case that it is compared with
  double limit;
  const char* what;  // in words
  // Which of the sorted repetitions are compared: the medians, or, where a limit near 1 meets a clock rate that jumps,
  // the least, which were not disturbed.
  double quantile = 0.5;
};
std::span<const Bar> Bars();
std::span<const Bar> AdapterBars();  // of adapter_bench; all else here is of count_bench

// Every name that a run must have: anyone may rely on them to compare with.
std::span<const char* const> ContractNames();
std::span<const char* const> AdapterNames();

struct Judged {
  const Bar* bar;
  std::optional<double> ratio;  // of the quantiles; nothing: one of the two was not measured
  bool holds() const { return ratio && *ratio <= bar->limit; }
};
std::vector<Judged> Judge(const Results& results, std::span<const Bar> bars = Bars());

}  // namespace bench
