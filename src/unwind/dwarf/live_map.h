// The code that is loaded, with its frozen tables: what a walk in a signal handler searches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/last_at.h"
#include "src/sys/own_memory.h"
#include "src/unwind/dwarf/frozen_cfi_rows.h"
#include "src/unwind/dwarf/frozen_table.h"
#include "src/unwind/dwarf/live_cache.h"
#include "src/unwind/dwarf/loaded_modules.h"

namespace perfkit::unwind {

// Does not change once built.
struct LiveModule {
  std::string identity;
  uint64_t bias = 0;
  ModuleMark mark;
  bool stays = false;   // is never unloaded while this runs
  bool is_ready = true;  // false: its tables are still to be built
  FrozenTable rules;
  FrozenCfiRows rows;

  // Whether this is what is loaded there now. What was unloaded since the map was made, so that it could be something
  // else, is found out here: 0.1 us.
  PERFKIT_IN_HANDLER bool IsThere() const {
    if (stays || mark.address == 0) return true;  // what has no mark has no rules either
    const uint64_t first = sys::PageOf(mark.address), last = sys::PageOf(mark.address + ModuleMark::kBytes - 1);
    if (!sys::CanRead(first) || (last != first && !sys::CanRead(last))) return false;
    return sys::WordAt(mark.address) == mark.words[0] && sys::WordAt(mark.address + 8) == mark.words[1];
  }

  size_t bytes() const { return sizeof(*this) + rules.heap_bytes() + rows.heap_bytes(); }
};

// Does not change once published, but for what is remembered of it.
struct LiveMap {
  struct Range {
    uint64_t begin = 0, end = 0;
    const LiveModule* module = nullptr;  // none: code that no module holds

    bool operator==(const Range&) const = default;
  };

  // No such range: null.
  const Range* Find(uint64_t address) const {
    const Range* const found =
        base::LastAt(ranges.data(), ranges.size(), address, [](const Range& range) { return range.begin; });
    return found != nullptr && address < found->end ? found : nullptr;
  }

  // Without its modules, which other maps may share.
  size_t bytes() const {
    return sizeof(*this) + LiveCache::kBytes + ranges.capacity() * sizeof(ranges[0]) +
           modules.capacity() * sizeof(modules[0]);
  }

  std::vector<Range> ranges;  // by begin
  std::vector<std::shared_ptr<const LiveModule>> modules;
  mutable LiveCache cache;
};

}  // namespace perfkit::unwind
