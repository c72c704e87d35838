// Numbers as people read them: a table of counts with unit, coverage, metrics and, for what is missing, the reason.
#pragma once

#include <string>

#include "perfkit/counter.h"
#include "perfkit/scope.h"

namespace perfkit {

// One line an event: value (scaled where it was multiplexed, and then said so), unit, coverage, the metric that goes
// with it (metrics.h), or "n/a" with its reason. Allocates; for reports, not for hot paths.
std::string FormatTable(const CounterSet& set, const ScopeTotals& total);

// 1234567 -> "1,234,567".
std::string FormatNumber(uint64_t value);

}  // namespace perfkit
