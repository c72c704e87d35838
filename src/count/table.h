// A table of counts as text, from rows that anyone may fill: the part of format.h that needs no open set.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "perfkit/count.h"

namespace perfkit::count {

struct TableRow {
  std::string_view name;
  Count count;
  std::string_view unit;  // "" for plain events
  double scale = 1;       // what one count stands for, in `unit` (sysfs .scale)
  std::string reason;     // why there is no number
};

// One line a row: value, unit, name, metric, worth. `wall_ns` 0: unknown, then no rates by the clock on the wall.
std::string FormatRows(std::span<const TableRow> rows, uint64_t wall_ns);

// The number alone, as it stands in the first column: scaled when multiplexed, "n/a" when there is none.
std::string FormatValue(const TableRow& row);

// What has to be known about the number: "62 % coverage, scaled; user space only". "" when there is nothing to say.
std::string FormatWorth(const Count& count);

}  // namespace perfkit::count
