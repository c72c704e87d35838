// Who released which lock last: a table by the lock's address, written by threads that release a lock for which others
// wait.
//
// Two locks may share an entry. Then the later release replaces the other one, and the thread that waits for the other
// lock does not know who released it: the entry has 42 bits of a hash of the address, so that it can tell.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/mix.h"

namespace perfkit::sys::locks {

// A release: who, of which lock, when.
struct Release {
  uint64_t who = 0;  // the lock's hash, and the tid in the low bits
  uint64_t at_ns = 0;

  bool operator==(const Release&) const = default;
};

class ReleaseTable {
 public:
  // Threads wait for the lock, and its type does not tell that: from now on, and until as many calls of Leave, Awaited
  // returns true. Acquire-release pairs with Awaited of threads that release later.
  void Enter(const void* lock) { EntryOf(lock).waiting.fetch_add(1, std::memory_order_acq_rel); }
  void Leave(const void* lock) { EntryOf(lock).waiting.fetch_sub(1, std::memory_order_acq_rel); }
  // Returns true if threads wait for this lock, or for one with the same entry. A load. Relaxed: a release that misses
  // an Enter of the same moment is not noted.
  bool Awaited(const void* lock) const { return EntryOf(lock).waiting.load(std::memory_order_relaxed) != 0; }

  // Any thread, also in signal handlers.
  void Note(const void* lock, uint32_t tid, uint64_t now_ns) {
    Entry& entry = EntryOf(lock);
    // Release pairs with the acquire in Last. The time is first: if it is read with an older `who`, Last reads again.
    entry.at_ns.store(now_ns, std::memory_order_release);
    entry.who.store(TagOf(lock) | (tid & kTidMask), std::memory_order_release);
  }
  // Returns the last release of the entry.
  Release Last(const void* lock) const {
    const Entry& entry = EntryOf(lock);
    // Acquire pairs with the releases in Note.
    Release last;
    last.who = entry.who.load(std::memory_order_acquire);
    last.at_ns = entry.at_ns.load(std::memory_order_acquire);
    return last.who == entry.who.load(std::memory_order_acquire) ? last : Release{};
  }
  // Returns the tid, or 0 if it was another lock that was released.
  static uint32_t TidOf(const Release& release, const void* lock) {
    return (release.who & ~kTidMask) == TagOf(lock) ? static_cast<uint32_t>(release.who & kTidMask) : 0;
  }

  // Requires that no other thread exists. Relaxed: no thread to pair with.
  void Clear() {
    for (Entry& entry : entries_) {
      entry.waiting.store(0, std::memory_order_relaxed);
      entry.who.store(0, std::memory_order_relaxed);
      entry.at_ns.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr unsigned kTidBits = 22;  // PID_MAX_LIMIT (include/linux/threads.h)
  static constexpr uint64_t kTidMask = (uint64_t{1} << kTidBits) - 1;
  static constexpr unsigned kIndexBits = 10;

  struct alignas(32) Entry {
    std::atomic<uint32_t> waiting{0};
    std::atomic<uint64_t> who{0}, at_ns{0};
  };

  static uint64_t HashOf(const void* lock) { return base::Mix(reinterpret_cast<uintptr_t>(lock)); }
  static uint64_t TagOf(const void* lock) { return base::Mix(HashOf(lock) >> 1) & ~kTidMask; }
  Entry& EntryOf(const void* lock) { return entries_[HashOf(lock) >> (64 - kIndexBits)]; }
  const Entry& EntryOf(const void* lock) const { return entries_[HashOf(lock) >> (64 - kIndexBits)]; }

  Entry entries_[size_t{1} << kIndexBits];
};

}  // namespace perfkit::sys::locks
