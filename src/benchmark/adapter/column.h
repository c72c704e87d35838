// The name of a column, which tells the quality of its number, and the reason if there is none.
#pragma once

#include <string>

#include "perfkit/counter.h"

namespace perfkit::adapter {

// Returns "page-faults"; "page-faults:u", as perf writes it, if the kernel's part is excluded without a request;
// "task-clock[ns]".
std::string ColumnName(const EventConfig& event, Validity fixed_flags);

// Returns in a few words why `count`, the i-th of `set`, is no number; never "".
std::string WhyNot(const CounterSet& set, size_t i, const Count& count);

}  // namespace perfkit::adapter
