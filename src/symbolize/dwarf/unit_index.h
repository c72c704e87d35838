// Which unit of a module an address is in: made once a module, from .debug_aranges, or from the units' own ranges.
#pragma once

#include <cstdint>

#include "src/base/flatten.h"
#include "src/symbolize/dwarf/unit.h"

namespace perfkit::symbolize::dwarf {

// Numbers are indices in `info.units`, which were found before.
base::FlatRanges IndexUnits(const DebugInfo& info, const DebugInfo* shared);

}  // namespace perfkit::symbolize::dwarf
