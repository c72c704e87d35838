// The results as text: a table for the terminal, a page for docs/.
#pragma once

#include <span>
#include <string>

#include "bench/check/bars.h"
#include "bench/check/results.h"

namespace bench {

// How the run was made.
struct Method {
  int repetitions = 0;
  double min_seconds = 0;
};

std::string FormatBars(std::span<const Judged> judged);
std::string FormatPage(const Results& results, std::span<const Judged> judged, const Method& method);

}  // namespace bench
