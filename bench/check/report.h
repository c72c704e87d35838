// The results as text: a table for the terminal, a page for docs/.
#pragma once

#include <span>
#include <string>

#include "bench/check/bars.h"
#include "bench/check/results.h"

namespace bench {

std::string FormatBars(std::span<const Judged> judged);
// Of all suites; says which were not run.
std::string FormatPage(const Results& results, std::span<const Judged> judged);

}  // namespace bench
