// Finds the unit that contains an address. Built once for each module, from .debug_aranges or from the units' own
// ranges.
#pragma once

#include <cstdint>

#include "src/base/flatten.h"
#include "src/symbolize/dwarf/unit.h"

namespace perfkit::symbolize::dwarf {

// Returns the index; its numbers are indices in `info.units`. `shared`: dwz's debug file that several modules share,
// for strings and entries that `info` refers to, or nullptr. Requires that info.FindUnits() was called.
base::FlatRanges IndexUnits(const DebugInfo& info, const DebugInfo* shared);

}  // namespace perfkit::symbolize::dwarf
