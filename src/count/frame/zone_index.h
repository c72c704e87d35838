// Finds a zone by its parent and the address of its name, in constant time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/count/name_slot.h"

namespace perfkit::count {

// A hash table with open addressing, whose memory is allocated at construction. Equal names at many addresses may fill
// it. Further ones are then not added, and the caller has to compare names as texts.
class ZoneIndex {
 public:
  explicit ZoneIndex(size_t zones) : entries_(std::bit_ceil(2 * zones)) {}

  // Returns the zone, or 0 if it is not known.
  uint16_t Find(uint16_t parent, const char* name) const {
    for (size_t at = SlotOf(parent, name);; at = Next(at)) {
      const Entry& entry = entries_[at];
      if (entry.zone == 0 || (entry.name == name && entry.parent == parent)) return entry.zone;
    }
  }

  // Adds a zone that Find did not find, unless the table is half full. `zone` is not 0.
  void Add(uint16_t parent, const char* name, uint16_t zone) {
    if (2 * used_ == entries_.size()) return;
    ++used_;
    size_t at = SlotOf(parent, name);
    while (entries_[at].zone != 0) at = Next(at);
    entries_[at] = {name, parent, zone};
  }

 private:
  struct Entry {
    const char* name = nullptr;
    uint16_t parent = 0, zone = 0;
  };

  size_t SlotOf(uint16_t parent, const char* name) const { return NameSlot(parent, name, shift_); }
  size_t Next(size_t at) const { return (at + 1) & (entries_.size() - 1); }

  std::vector<Entry> entries_;
  unsigned shift_ = NameShift(entries_.size());
  size_t used_ = 0;
};

}  // namespace perfkit::count
