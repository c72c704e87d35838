// Which tasks await which: chains of awaiting tasks, as 16-bit numbers.
//
//   chain = the chain of the awaiting task + the node of TaskNodes in which it awaits
//
// A table with open addressing; the number of a chain is the index of its slot, plus 1. Slots are only filled, so a
// chain never changes.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace perfkit::count {

// Thread-safe; lock-free; does not allocate after construction.
class AwaitChains {
 public:
  static constexpr uint16_t kNone = 0;
  static constexpr uint16_t kUnknown = UINT16_MAX;  // The chain is too long, or there are too many.
  // Longer chains are kUnknown, so that a deep recursion leaves room for others.
  static constexpr int kMaxLength = 32;

  // The innermost task of a chain, and the chain of tasks that await it.
  struct Link {
    uint16_t awaiters = kNone;
    uint16_t node = 0;
  };

  // The table has about eight times as many slots as `nodes`, at most 2^15.
  explicit AwaitChains(size_t nodes) : slots_(std::bit_ceil(std::clamp<size_t>(8 * nodes, 2, size_t{1} << 15))) {}

  // Returns the chain of a task that is awaited at `link.node`, which is not 0. If that is too long, or too many slots
  // are taken, returns the chain of `link.node` alone after kUnknown; if that does not fit either, kUnknown.
  uint16_t Add(Link link) noexcept {
    int length = 1;
    for (uint16_t chain = link.awaiters; chain != kNone && chain != kUnknown; chain = this->link(chain).awaiters)
      ++length;
    const uint16_t chain = length <= kMaxLength ? AddKey(link) : kUnknown;
    return chain != kUnknown ? chain : AddKey({kUnknown, link.node});
  }

  // Requires that Add has returned `chain`, and that it is not kUnknown.
  Link link(uint16_t chain) const noexcept {
    const uint32_t key = slots_[chain - 1u].load(std::memory_order_relaxed);
    return {static_cast<uint16_t>(key >> 16), static_cast<uint16_t>(key)};
  }

 private:
  static constexpr size_t kMaxProbes = 64;

  uint16_t AddKey(Link link) noexcept {
    const uint32_t key = uint32_t{link.awaiters} << 16 | link.node;
    size_t slot = key * 0x9E3779B1u >> 16;  // Fibonacci hashing, as NameSlot
    for (size_t probes = 0; probes < kMaxProbes; ++probes, ++slot) {
      slot &= slots_.size() - 1;
      // Relaxed: a chain is its slot's value, and nothing else.
      uint32_t found = slots_[slot].load(std::memory_order_relaxed);
      if (found == 0 && slots_[slot].compare_exchange_strong(found, key, std::memory_order_relaxed)) found = key;
      if (found == key) return static_cast<uint16_t>(slot + 1);
    }
    return kUnknown;
  }

  std::vector<std::atomic<uint32_t>> slots_;
};

}  // namespace perfkit::count
