// The cells of a table of counts.
#pragma once

#include <string>
#include <string_view>

#include "perfkit/format.h"

namespace perfkit::count {

// Returns true if `count` is a number: counted, and on a counter for a part of the time at least.
bool HasNumber(const Count& count);

// Returns why `count` is not a number, if no other reason is known.
std::string_view WhyNone(const Count& count);

// Returns the number for the first column: scaled if multiplexed, "n/a" if there is none.
std::string FormatValue(const TableRow& row);

// Returns what limits a number: "62 % coverage, scaled; user space only". Returns "" if nothing does.
std::string FormatWorth(double coverage, Validity validity);

}  // namespace perfkit::count
