// The cells of a table of counts.
#pragma once

#include <string>

#include "perfkit/format.h"

namespace perfkit::count {

// The number alone, as it stands in the first column: scaled when multiplexed, "n/a" when there is none.
std::string FormatValue(const TableRow& row);

// What has to be known about the number: "62 % coverage, scaled; user space only". "" when there is nothing to say.
std::string FormatWorth(const Count& count);

}  // namespace perfkit::count
