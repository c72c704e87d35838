// A table from two numbers to one: open addressing, so that a look-up touches one line of the cache most of the time.
// Building trees is nothing but look-ups of such pairs (a parent and what it called).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "src/base/mix.h"

namespace perfkit::profile {

struct PairKey {
  uint64_t a = 0, b = 0;
  bool operator==(const PairKey&) const = default;
};

// Not thread-safe. Values are below UINT32_MAX.
class PairIndex {
 public:
  struct Entry {
    PairKey first{};
    uint32_t second = kFree;
  };

  // As std::unordered_map's. The entry is valid until the next call.
  std::pair<Entry*, bool> try_emplace(const PairKey& key, size_t value) {
    if (2 * size_ >= entries_.size()) Grow();
    Entry& entry = entries_[PlaceOf(key)];
    const bool is_new = entry.second == kFree;
    if (is_new) {
      entry = {key, static_cast<uint32_t>(value)};
      ++size_;
    }
    return {&entry, is_new};
  }

  // The key's value; nullopt if it has none.
  std::optional<uint32_t> Find(const PairKey& key) const {
    if (entries_.empty()) return std::nullopt;
    const Entry& entry = entries_[PlaceOf(key)];
    return entry.second == kFree ? std::nullopt : std::optional(entry.second);
  }

 private:
  static constexpr uint32_t kFree = UINT32_MAX;
  static constexpr size_t kFirstSize = 64;

  // Where the key's entry is, or the free one where it belongs.
  size_t PlaceOf(const PairKey& key) const {
    const uint64_t hash = base::Mix(key.a ^ base::Mix(key.b));
    const size_t mask = entries_.size() - 1;
    size_t at = (hash ^ hash >> 32) & mask;
    while (entries_[at].second != kFree && entries_[at].first != key) at = (at + 1) & mask;
    return at;
  }

  void Grow() {
    std::vector<Entry> old(entries_.empty() ? kFirstSize : 2 * entries_.size());
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.second != kFree) entries_[PlaceOf(entry.first)] = entry;
    }
  }

  std::vector<Entry> entries_;  // a power of two of them, at least half free
  size_t size_ = 0;
};

}  // namespace perfkit::profile
