// What an entry says that its code is: one range, or a list of them.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "src/symbolize/dwarf/unit.h"

namespace perfkit::symbolize::dwarf {

// How much of lists of ranges may still be read: entries of a damaged file may all have the same long list.
struct RangeBudget {
  explicit RangeBudget(const Unit& unit)
      : left(unit.sections().ranges.size() + unit.sections().rnglists.size() + unit.header().end - unit.header().at) {}
  uint64_t left;
};

// Calls `visit` with each range [begin, end) that is not empty and does not begin at 0, until it returns false. Code
// that a linker left out is said to be at 0. At most as many as the budget has, which they are taken from.
void ForEachRange(const Unit& unit, const Entry& entry, RangeBudget& budget,
                  absl::FunctionRef<bool(uint64_t begin, uint64_t end)> visit);

}  // namespace perfkit::symbolize::dwarf
