// Counts bytes, and drops the least recently used units if there are too many. A unit is dropped with all that was
// decoded of it; the owner of its slot sees a null pointer then, and reads it again when it is asked for.
#include "src/symbolize/dwarf/unit_cache.h"

#include <algorithm>

namespace perfkit::symbolize::dwarf {

LoadedUnit* UnitCache::Add(Unit unit, size_t bytes, LoadedUnit*& slot) {
  held_.push_back(std::make_unique<Held>(std::move(unit), &slot));
  slot = held_.back().get();
  Use(*slot, sizeof(Held) + bytes);
  return slot;
}

void UnitCache::Use(LoadedUnit& unit, size_t more_bytes) {
  auto& held = static_cast<Held&>(unit);
  held.used = ++uses_;
  held.bytes += more_bytes;
  bytes_ += more_bytes;
}

// Trims to three quarters, so that the next unit does not trim again.
void UnitCache::Trim() {
  if (bytes_ <= max_bytes_) return;
  std::sort(held_.begin(), held_.end(), [](const auto& a, const auto& b) { return a->used > b->used; });
  while (held_.size() > 1 && bytes_ > max_bytes_ / 4 * 3) {
    bytes_ -= held_.back()->bytes;
    *held_.back()->slot = nullptr;
    held_.pop_back();
  }
}

}  // namespace perfkit::symbolize::dwarf
