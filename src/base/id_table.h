// A flat hash table from numbers to numbers, such as from the id in a record to the event that wrote it, which is
// looked up for each record.
//
// The kernel numbers ids consecutively, so they differ in their low bits; multiplication by 2^64 / phi spreads them
// (Knuth, The Art of Computer Programming, 6.4). At least three quarters of the table are free, so that nearly all
// searches end where they begin. It grows only when a number is added.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/base/mix.h"

namespace perfkit::base {

// Not thread-safe. Ids are not 0: perf's start at 1.
class IdTable {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  void Clear() { *this = IdTable(); }

  // Adds an id. Requires that it is new.
  void Add(uint64_t id, uint32_t value) {
    if (4 * ++size_ > slots_.size()) Grow();
    slots_[PlaceOf(id)] = {id, value};
  }

  // Returns the value of an id; adds `value` if it is new.
  uint32_t FindOrAdd(uint64_t id, uint32_t value) {
    const Slot& slot = slots_[PlaceOf(id)];
    if (slot.id != 0) return slot.value;
    Add(id, value);
    return value;
  }

  // Returns kNone if the id is unknown. Does not allocate.
  uint32_t Find(uint64_t id) const { return slots_[PlaceOf(id)].value; }

 private:
  struct Slot {
    uint64_t id = 0;
    uint32_t value = kNone;
  };

  // Returns the place of an id, or the free one where it belongs.
  size_t PlaceOf(uint64_t id) const {
    size_t at = Mix(id) >> shift_;
    while (slots_[at].id != id && slots_[at].id != 0) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  [[gnu::noinline]] void Grow() {
    std::vector<Slot> old(std::bit_ceil(8 * size_));
    old.swap(slots_);
    shift_ = 64 - std::countr_zero(slots_.size());
    for (const Slot& slot : old) {
      if (slot.id != 0) slots_[PlaceOf(slot.id)] = slot;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(2);  // The size is a power of two. Id 0 means that the slot is free.
  size_t size_ = 0;
  int shift_ = 63;  // 64 minus the number of bits of an index.
};

}  // namespace perfkit::base
