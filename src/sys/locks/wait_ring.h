// The buffer of recorded waits: many writers, one reader, no lock.
//
//   position   0   1   2   ...  N-1 | N  N+1 ...      slot = position % N, round = position / N
//   turn of a slot: 2 * round  free for that round    2 * round + 1  holds the record of that round
//
// This is Vyukov's bounded queue (1024cores.net, "Bounded MPMC queue") with one reader. All threads share one buffer: so
// nothing is allocated when a thread waits for the first time, perhaps in malloc, and nothing is freed when it ends.
// A thread writes once for each wait of 10 us or more (SessionOptions::lock_waits_from), so writers seldom meet.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/sys/lock_waits.h"

namespace perfkit::sys::locks {

class WaitRing {
 public:
  static constexpr size_t kSlots = 8192;

  // Counts the record as lost if there is no room. Thread-safe and async-signal-safe.
  void Put(const LockWait& wait) {
    // Relaxed: other threads move it, too; the slot's turn decides.
    uint64_t position = next_.load(std::memory_order_relaxed);
    for (;;) {
      Slot& slot = slots_[position % kSlots];
      const uint64_t free = 2 * (position / kSlots);
      // Acquire pairs with the release in Take: the reader has finished with the slot.
      const uint64_t turn = slot.turn.load(std::memory_order_acquire);
      if (turn < free) {
        lost_.fetch_add(1, std::memory_order_relaxed);  // Relaxed: a sum; Lost reads it.
        return;
      }
      if (turn > free) {
        // Another thread has taken the position. Relaxed: as above.
        position = next_.load(std::memory_order_relaxed);
        continue;
      }
      // Relaxed: pairs with this line in other threads. One of them succeeds.
      if (!next_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) continue;
      slot.wait = wait;
      slot.turn.store(free + 1, std::memory_order_release);  // Pairs with the acquire in Take.
      return;
    }
  }

  // Returns false if there is no record, or if the next one is still being written. One thread at a time.
  bool Take(LockWait& wait) {
    Slot& slot = slots_[taken_ % kSlots];
    const uint64_t free = 2 * (taken_ / kSlots);
    if (slot.turn.load(std::memory_order_acquire) != free + 1) return false;  // Pairs with the release in Put.
    wait = slot.wait;
    slot.turn.store(free + 2, std::memory_order_release);  // Pairs with the acquire in Put.
    ++taken_;
    return true;
  }

  // Returns how many records were lost since the program began.
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }  // Pairs with the sum in Put.

  // Requires that no other thread exists. Relaxed: no thread to pair with.
  void Clear() {
    for (Slot& slot : slots_) slot.turn.store(0, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    taken_ = 0;
  }

 private:
  struct alignas(64) Slot {
    std::atomic<uint64_t> turn{0};
    LockWait wait;
  };

  alignas(64) std::atomic<uint64_t> next_{0};  // the position of the next record
  alignas(64) uint64_t taken_ = 0;             // the position of the next record that is read
  std::atomic<uint64_t> lost_{0};
  Slot slots_[kSlots];
};

}  // namespace perfkit::sys::locks
