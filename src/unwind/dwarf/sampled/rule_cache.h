// A cache of rules by address. For a program's hot code it answers nearly all lookups, in a few nanoseconds.
//
// It has 2^13 entries of 16 bytes, 128 KiB, which stay in the second-level cache, in sets of two. A key is an address
// and the generation of the process's mappings, so nothing has to be cleared when mappings change.
//
// Each entry also remembers the entry that was found for its caller the last time. That is a prediction, which is then
// compared with the key. Without it, the index is a hash of the return address, so the processor has to wait for that
// word of the stack. The prediction comes from the entry before it, in the cache: the processor goes on along the
// predictions, several frames ahead, and compares the keys when the words of the stack have come. Stacks resemble each
// other, so at least four of five predictions are right.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/mix.h"
#include "src/unwind/rule.h"

namespace perfkit::unwind {

// Not thread-safe. Does not allocate after its construction.
class RuleCache {
 public:
  static constexpr unsigned kBits = 13;
  static constexpr uint64_t kAddressBits = 48;
  static constexpr uint32_t kMaxGenerations = (1 << (64 - kAddressBits)) - 1;

  struct Entry {
    uint64_t key = 0;  // 0 is no key: generations start at 1.
    Rule rule;
  };
  static_assert(sizeof(Entry) == 16);

  // The index of an entry.
  using Slot = uint32_t;

  // Returns false for addresses of 2^48 and more, which no program has that did not explicitly ask for them. They are
  // not cached.
  static constexpr bool CanHold(uint64_t address) { return address >> kAddressBits == 0; }
  static constexpr uint64_t KeyOf(uint64_t address, uint32_t generation) {
    return address | uint64_t{generation} << kAddressBits;
  }

  // Returns nullptr if the key is not cached.
  const Rule* Find(uint64_t key) const {
    Slot slot = 0;
    return Find(key, slot);
  }
  // As above, and sets `slot` to the entry's index if it is found.
  const Rule* Find(uint64_t key, Slot& slot) const { return Search(key, slot) ? &entries_[slot].rule : nullptr; }
  // As above, for the caller of the frame whose rule is in `slot`: tries the predicted entry first. If the key is not
  // cached, `slot` is unchanged.
  const Rule* FindCaller(uint64_t key, Slot& slot) {
    const Slot guess = callers_[slot];
    if (entries_[guess].key == key) [[likely]] {
      slot = guess;
      return &entries_[guess].rule;
    }
    const Slot callee = slot;
    if (!Search(key, slot)) return nullptr;
    callers_[callee] = static_cast<uint16_t>(slot);
    return &entries_[slot].rule;
  }
  // Replaces the older entry of the set.
  void Put(uint64_t key, const Rule& rule) {
    const size_t first = FirstOf(key);
    entries_[first + 1] = entries_[first];
    entries_[first] = {key, rule};
  }
  // For when the numbers of generations start again.
  void Clear() { entries_.fill({}); }

 private:
  static constexpr size_t FirstOf(uint64_t key) { return (base::Mix(key) >> (64 - kBits)) & ~size_t{1}; }

  bool Search(uint64_t key, Slot& slot) const {
    const size_t first = FirstOf(key);
    for (const size_t at : {first, first + 1}) {
      if (entries_[at].key == key) return slot = static_cast<Slot>(at), true;
    }
    return false;
  }

  alignas(64) std::array<Entry, size_t{1} << kBits> entries_{};
  std::array<uint16_t, size_t{1} << kBits> callers_{};  // By entry: the predicted entry of the caller.
};

}  // namespace perfkit::unwind
