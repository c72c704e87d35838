// A cache of rules by address that all walks of live stacks share. For a program's hot code it answers nearly all
// lookups by reading one cache line, where a FrozenTable needs about five.
//
// Threads and signal handlers read and write it at the same time, without a lock. An entry is two words, which a reader
// may see from different writers. So the key is stored as its exclusive-or with the rule: it matches only if both words
// are from one write (Hyatt and Mann, "A lock-less transposition table implementation for parallel search", ICGA
// Journal 2002).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "src/base/mix.h"
#include "src/unwind/rule.h"

namespace perfkit::unwind {

class LiveCache {
 public:
  static constexpr unsigned kBits = 12;
  static constexpr size_t kBytes = (size_t{1} << kBits) * 16;

  // An entry of zeros would be a valid entry of address 0. So the entry at that address's index starts with another
  // key, which no address at this index matches.
  LiveCache() : entries_(std::make_unique<Entry[]>(size_t{1} << kBits)) {
    entries_[IndexOf(0)].key.store(1, std::memory_order_relaxed);
  }

  // Returns false if no rule is kept for `address`.
  bool Find(uint64_t address, Rule& rule) const {
    const Entry& entry = entries_[IndexOf(address)];
    const uint64_t bits = entry.rule.load(std::memory_order_relaxed);
    if ((entry.key.load(std::memory_order_relaxed) ^ bits) != address) return false;
    rule = std::bit_cast<Rule>(bits);
    return true;
  }
  void Prefetch(uint64_t address) const { __builtin_prefetch(&entries_[IndexOf(address)]); }
  // Replaces the entry at the address's index.
  void Put(uint64_t address, const Rule& rule) {
    Entry& entry = entries_[IndexOf(address)];
    const auto bits = std::bit_cast<uint64_t>(rule);
    entry.key.store(address ^ bits, std::memory_order_relaxed);
    entry.rule.store(bits, std::memory_order_relaxed);
  }

 private:
  struct Entry {
    std::atomic<uint64_t> key{0}, rule{0};
  };
  static_assert(sizeof(Entry) == 16);

  static constexpr size_t IndexOf(uint64_t address) { return base::Mix(address) >> (64 - kBits); }

  std::unique_ptr<Entry[]> entries_;
};

}  // namespace perfkit::unwind
