// Rules by address: of a program's hot code nearly every look-up is answered here, in some nanoseconds.
//
// 2^13 entries of 16 bytes, 128 KiB, which stay in the second-level cache, in sets of two. The key is the address and
// the generation of what the process has mapped, so that nothing has to be cleared when mappings change.
//
// An entry also remembers which one answered for the caller, the last time: a guess, to be held against the key. What a
// processor has to compute or load it waits for; a guess that is compared it believes and goes on, several frames
// ahead, while keys and stacks still come from memory. Stacks are alike, so it is right four times of five and more.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/base/mix.h"
#include "src/unwind/rule.h"

namespace perfkit::unwind {

class RuleCache {
 public:
  static constexpr unsigned kBits = 13;
  static constexpr uint64_t kAddressBits = 48;
  static constexpr uint32_t kMaxGenerations = (1 << (64 - kAddressBits)) - 1;

  struct Entry {
    uint64_t key = 0;  // no key: generations begin at 1
    Rule rule;
  };
  static_assert(sizeof(Entry) == 16);

  // Which entry.
  using Slot = uint32_t;

  // Further addresses are those of no program that did not ask for them: never kept.
  static constexpr bool CanHold(uint64_t address) { return address >> kAddressBits == 0; }
  static constexpr uint64_t KeyOf(uint64_t address, uint32_t generation) {
    return address | uint64_t{generation} << kAddressBits;
  }

  // Null: not here.
  const Rule* Find(uint64_t key) const {
    Slot slot = 0;
    return Find(key, slot);
  }
  // The same, and where it is.
  const Rule* Find(uint64_t key, Slot& slot) const { return Search(key, slot) ? &entries_[slot].rule : nullptr; }
  // The same, of the caller of the frame whose rule was in `slot`, which becomes that of this one. Where nothing is
  // found it stays as it is.
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
  // Of two in a set the older one goes.
  void Put(uint64_t key, const Rule& rule) {
    const size_t first = FirstOf(key);
    entries_[first + 1] = entries_[first];
    entries_[first] = {key, rule};
  }
  // When generations begin again.
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
  std::array<uint16_t, size_t{1} << kBits> callers_{};
};

}  // namespace perfkit::unwind
