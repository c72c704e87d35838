// The cells of a table of counts.
#pragma once

#include <string>

#include "perfkit/format.h"

namespace perfkit::count {

// Returns the number for the first column: scaled if multiplexed, "n/a" if there is none.
std::string FormatValue(const TableRow& row);

// Returns what limits the number: "62 % coverage, scaled; user space only". Returns "" if nothing does.
std::string FormatWorth(const Count& count);

}  // namespace perfkit::count
