// The ranges of code of an entry: one range, or a list of them.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "src/symbolize/dwarf/unit.h"

namespace perfkit::symbolize::dwarf {

// A maximum for the ranges that may still be read: all entries of a damaged file may refer to the same long list.
struct RangeBudget {
  explicit RangeBudget(const Unit& unit)
      : left(unit.sections().ranges.size() + unit.sections().rnglists.size() + unit.header().end - unit.header().at) {}
  uint64_t left;
};

// Calls `visit` for each range [begin, end) that is not empty and does not begin at 0, until it returns false. Linkers
// set the address of removed code to 0. Reads at most as many ranges as the budget has left, and reduces it.
void ForEachRange(const Unit& unit, const Entry& entry, RangeBudget& budget,
                  absl::FunctionRef<bool(uint64_t begin, uint64_t end)> visit);

}  // namespace perfkit::symbolize::dwarf
