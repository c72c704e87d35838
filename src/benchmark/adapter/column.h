// What a column is called, and why there is none: a name must tell what its number is worth.
#pragma once

#include <string>

#include "perfkit/counter.h"

namespace perfkit::adapter {

// "page-faults"; "page-faults:u", as perf writes it, where the kernel's part is left out unasked; "task-clock[ns]".
std::string ColumnName(const EventConfig& event, Validity fixed_flags);

// Why `count`, the i-th of `set`, is no number. In a few words; never "".
std::string WhyNot(const CounterSet& set, size_t i, const Count& count);

}  // namespace perfkit::adapter
