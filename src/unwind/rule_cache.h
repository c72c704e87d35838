// Rules by address: of a program's hot code nearly every look-up is answered here, in some nanoseconds.
//
// Direct-mapped: 2^12 entries of 16 bytes, 64 KiB, which stay in the second-level cache. The key is the address and the
// generation of what the process has mapped, so that nothing has to be cleared when mappings change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/unwind/rule.h"

namespace perfkit::unwind {

class RuleCache {
 public:
  static constexpr unsigned kBits = 12;
  static constexpr uint64_t kAddressBits = 48;
  static constexpr uint32_t kMostGenerations = (1 << (64 - kAddressBits)) - 1;

  struct Entry {
    uint64_t key = 0;  // no key: generations begin at 1
    Rule rule;
  };
  static_assert(sizeof(Entry) == 16);

  RuleCache() : entries_(std::make_unique<Entry[]>(size_t{1} << kBits)) {}

  // Further addresses are those of no program that did not ask for them: never kept.
  static constexpr bool CanHold(uint64_t address) { return address >> kAddressBits == 0; }
  static constexpr uint64_t KeyOf(uint64_t address, uint32_t generation) {
    return address | uint64_t{generation} << kAddressBits;
  }

  // Null: not here.
  const Rule* Find(uint64_t key) const {
    const Entry& entry = entries_[IndexOf(key)];
    return entry.key == key ? &entry.rule : nullptr;
  }
  void Put(uint64_t key, const Rule& rule) { entries_[IndexOf(key)] = {key, rule}; }
  void Prefetch(uint64_t key) const { __builtin_prefetch(&entries_[IndexOf(key)]); }
  // When generations begin again.
  void Clear() { std::fill_n(entries_.get(), size_t{1} << kBits, Entry()); }

 private:
  // Fibonacci hashing: the high bits of the product are the well mixed ones.
  static constexpr size_t IndexOf(uint64_t key) { return key * 0x9e3779b97f4a7c15u >> (64 - kBits); }

  std::unique_ptr<Entry[]> entries_;
};

}  // namespace perfkit::unwind
