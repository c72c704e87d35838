// A flat hash table from the id in a record to the event that wrote it. It is read once for each record.
//
// The kernel numbers ids consecutively, so they differ in their low bits; multiplication by 2^64 / phi spreads them
// (Knuth, The Art of Computer Programming, 6.4). The table grows only when events are opened, never while records are
// read.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/mix.h"

namespace perfkit::sample {

// Not thread-safe. Find does not allocate.
class IdTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  void Clear() {
    slots_.clear();
    size_ = 0;
  }

  // Adds an id. Requires that it is new and not 0: perf's ids start at 1.
  void Add(uint64_t id, uint32_t value) {
    if (2 * ++size_ > slots_.size()) Grow();
    Insert(id, value);
  }

  // Returns kNone if the id is unknown.
  uint32_t Find(uint64_t id) const {
    if (slots_.empty()) return kNone;
    for (size_t at = Home(id);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at].id == id) return slots_[at].value;
      if (slots_[at].id == 0) return kNone;
    }
  }

 private:
  struct Slot {
    uint64_t id = 0;
    uint32_t value = kNone;
  };

  // Returns the slot at which the search for an id starts.
  size_t Home(uint64_t id) const { return base::Mix(id) >> shift_; }

  void Insert(uint64_t id, uint32_t value) {
    size_t at = Home(id);
    while (slots_[at].id != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = {id, value};
  }

  void Grow() {
    std::vector<Slot> old(std::bit_ceil(4 * size_));
    old.swap(slots_);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (const Slot& slot : old) {
      if (slot.id != 0) Insert(slot.id, slot.value);
    }
  }

  std::vector<Slot> slots_;  // The size is a power of two. Id 0 means that the slot is free.
  size_t size_ = 0;
  int shift_ = 63;  // 64 minus the number of bits of an index.
};

}  // namespace perfkit::sample
