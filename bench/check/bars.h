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
};
std::span<const Bar> Bars();

// Every name that a run must have: anyone may rely on them to compare with.
std::span<const char* const> ContractNames();

struct Judged {
  const Bar* bar;
  std::optional<double> ratio;  // of the medians; nothing: one of the two was not measured
  bool holds() const { return ratio && *ratio <= bar->limit; }
};
std::vector<Judged> Judge(const Results& results);

}  // namespace bench
