// The loaded code with its frozen tables: what walks in signal handlers search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/in_handler.h"
#include "src/base/last_at.h"
#include "src/sys/own_memory.h"
#include "src/unwind/dwarf/cfi/code_evidence.h"
#include "src/unwind/dwarf/live/frozen_cfi_rows.h"
#include "src/unwind/dwarf/live/frozen_table.h"
#include "src/unwind/dwarf/live/live_cache.h"
#include "src/unwind/dwarf/live/loaded_modules.h"

namespace perfkit::unwind {

// A loaded module. Immutable.
struct LiveModule {
  std::string identity;
  uint64_t bias = 0;
  ModuleMark mark;
  bool stays = false;    // Is never unloaded as long as this exists.
  bool is_ready = true;  // False until its tables are built.
  FrozenTable rules;
  FrozenCfiRows rows;
  std::vector<AddressRange> installs;  // The code that installs landing pads: InstallCode. Before relocation.
  AddressRange entry;                  // The code at the entry point, if it has no information. Before relocation.
  FunctionTable functions;             // Empty unless `stays`.

  // Returns true if this module is still loaded at its addresses, by its mark. Detects modules that were unloaded after
  // the map was made, and replaced by other ones. A module without a mark has no rules.
  PERFKIT_IN_HANDLER bool IsThere() const { return stays || mark.address == 0 || mark.IsThere(); }

  // Returns true if `address`, before relocation, is in the code that installs a landing pad.
  PERFKIT_IN_HANDLER bool Installs(uint64_t address) const {
    const AddressRange* const codes = installs.data();
    for (size_t i = 0, count = installs.size(); i < count; ++i) {
      if (codes[i].Holds(address)) return true;
    }
    return false;
  }

  size_t bytes() const {
    return sizeof(*this) + rules.heap_bytes() + rows.heap_bytes() + installs.capacity() * sizeof(installs[0]);
  }
};

// All executable memory. Immutable once published, except for the cache.
struct LiveMap {
  struct Range {
    uint64_t begin = 0, end = 0;
    const LiveModule* module = nullptr;  // Null for code that no module contains.

    bool operator==(const Range&) const = default;
  };

  // Returns nullptr if no range contains `address`.
  const Range* Find(uint64_t address) const {
    const Range* const found =
        base::LastAt(ranges.data(), ranges.size(), address, [](const Range& range) { return range.begin; });
    return found != nullptr && address < found->end ? found : nullptr;
  }

  // Returns the bytes of the map without its modules, which maps may share.
  size_t bytes() const {
    return sizeof(*this) + LiveCache::kBytes + ranges.capacity() * sizeof(ranges[0]) +
           modules.capacity() * sizeof(modules[0]);
  }

  std::vector<Range> ranges;  // Sorted by begin.
  std::vector<std::shared_ptr<const LiveModule>> modules;
  mutable LiveCache cache;
};

}  // namespace perfkit::unwind
