// Finds a zone by its parent and the address of its name, in constant time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "src/count/frame/zone_memory.h"
#include "src/count/name_slot.h"

namespace perfkit::count {

// A hash table with open addressing, which doubles when it is half full. Equal names at many addresses may fill it.
// Further ones are then not added, and the caller has to compare names as texts.
class ZoneIndex {
 public:
  struct Entry {
    const char* name = nullptr;
    uint16_t parent = 0, zone = 0;
  };
  static constexpr size_t kFirstEntries = 32;
  // Number of bytes of memory that the constructor takes at most.
  static constexpr size_t kFirstBytes = kFirstEntries * sizeof(Entry) + alignof(Entry);

  // `zones`: the maximum number of zones. `memory` must have kFirstBytes.
  ZoneIndex(size_t zones, ZoneMemory& memory) : max_entries_(std::bit_ceil(2 * zones)) {
    Resize(std::min(max_entries_, kFirstEntries), memory);
  }

  // Returns the zone, or 0 if it is not known.
  uint16_t Find(uint16_t parent, const char* name) const {
    for (size_t at = SlotOf(parent, name);; at = Next(at)) {
      const Entry& entry = entries_[at];
      if (entry.zone == 0 || (entry.name == name && entry.parent == parent)) return entry.zone;
    }
  }

  // Adds a zone that Find did not find, unless the table is half full and can't grow. `zone` is not 0.
  void Add(uint16_t parent, const char* name, uint16_t zone, ZoneMemory& memory) {
    const bool is_full = 2 * used_ == entries_.size();
    if (is_full && (entries_.size() == max_entries_ || !Resize(2 * entries_.size(), memory))) return;
    ++used_;
    Insert({name, parent, zone});
  }

 private:
  size_t SlotOf(uint16_t parent, const char* name) const { return NameSlot(parent, name, shift_); }
  size_t Next(size_t at) const { return (at + 1) & (entries_.size() - 1); }

  void Insert(const Entry& entry) {
    size_t at = SlotOf(entry.parent, entry.name);
    while (entries_[at].zone != 0) at = Next(at);
    entries_[at] = entry;
  }

  bool Resize(size_t entries, ZoneMemory& memory) {
    auto* const table = reinterpret_cast<Entry*>(memory.Take(entries * sizeof(Entry), alignof(Entry)));
    if (table == nullptr) return false;
    std::uninitialized_default_construct_n(table, entries);
    const std::span<const Entry> old = entries_;
    entries_ = {table, entries};
    shift_ = NameShift(entries);
    for (const Entry& entry : old) {
      if (entry.zone != 0) Insert(entry);
    }
    return true;
  }

  std::span<Entry> entries_;
  size_t max_entries_;
  unsigned shift_ = 0;
  size_t used_ = 0;
};

}  // namespace perfkit::count
