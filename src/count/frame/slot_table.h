// Numbers that many threads publish and any thread adds up, without locks, system calls or interrupts.
//
// A slot belongs to one thread at a time and holds two copies of its words. The writer fills the copy that is not
// current, then makes it current by raising the version; a reader that sees the same version before and after has read
// one whole publication. So neither side waits for the other, even if a writer is preempted half-way.
//
// The words of a thread that ends stay in its slot, and the slot's next owner adds its own to them. So every later
// total includes the threads that have ended. Nothing is moved, and so nothing can be counted twice.
//
//   slot:  [version][copy 0: missing, words...][copy 1: missing, words...]   cache-line aligned
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "perfkit/count.h"

namespace perfkit::count {

class SlotTable {
 public:
  // One word for each event, and two more for each multiplexable one.
  static constexpr size_t kMaxWords = 3 * kMaxEvents;
  static constexpr uint32_t kNoSlot = ~0u;

  SlotTable(size_t words, size_t slots);

  // Returns a free slot for the calling thread, or kNoSlot if all are taken. Thread-safe.
  uint32_t Claim();
  // Frees a slot that was claimed. Its owner must have published for the last time. Thread-safe.
  void Release(uint32_t slot);
  // Copies the words that the slot's earlier owners published last. The new owner adds its own to them. Called by the
  // slot's owner only, before its first Publish.
  void Carry(uint32_t slot, std::span<uint64_t> words) const;

  // Publishes `words`: totals, with those of earlier owners (Carry). A bit that was once set in `missing` stays set.
  // Called by the slot's owner only.
  void Publish(uint32_t slot, std::span<const uint64_t> words, uint32_t missing) noexcept;

  // Adds up all slots. Returns false if a slot is missing in `sums`, because its owner published during each attempt to
  // read it. Only a thread that does nothing else publishes that often. Thread-safe.
  bool Total(std::span<uint64_t> sums, uint32_t* missing) const noexcept;

  size_t words() const { return words_; }
  uint32_t claimed() const { return claimed_.load(std::memory_order_relaxed); }
  // Returns true if all slots are taken. A hint for threads that were refused: may be outdated.
  bool full() const { return claimed() >= slots_; }

 private:
  struct alignas(64) Line {
    std::array<uint64_t, 8> words;
  };
  uint64_t* At(uint32_t slot) const { return lines_[slot * lines_per_slot_].words.data(); }
  bool ReadSlot(uint32_t slot, uint64_t* out) const noexcept;

  size_t words_;
  size_t lines_per_slot_;
  uint32_t slots_;
  std::unique_ptr<Line[]> lines_;
  std::unique_ptr<std::atomic<bool>[]> taken_;
  std::atomic<uint32_t> used_{0};  // Number of slots that have been claimed at least once.
  std::atomic<uint32_t> claimed_{0};
};

}  // namespace perfkit::count
