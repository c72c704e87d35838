// The last release of each lock for which threads wait: a table by the lock's address. Threads that release such a lock
// write it.
//
// Two locks may share an entry. The later release then replaces the other one. So the entry also has 42 bits of a hash
// of the lock's address: a thread that waits for the other lock detects that its release was replaced, and is unknown.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/base/mix.h"

namespace perfkit::sys::locks {

// The last release of an entry.
struct Release {
  uint64_t who = 0;    // the lock's hash, and in the low bits the tid; 0: not known
  uint64_t at_ns = 0;  // when it began
  uint32_t count = 0;  // of all releases of the entry until then; wraps around
};

class ReleaseTable {
 public:
  // Awaited returns true from Enter until as many calls of Leave. For locks whose words do not show that threads wait.
  // Acquire-release: stays before the call that waits. Pairs with Awaited.
  void Enter(const void* lock) {
    Entry& entry = EntryOf(lock);
    entry.first_ns.store(0, std::memory_order_relaxed);
    entry.waiting.fetch_add(1, std::memory_order_acq_rel);
  }
  void Leave(const void* lock) { EntryOf(lock).waiting.fetch_sub(1, std::memory_order_acq_rel); }
  // Returns true if threads wait for this lock, or for one with the same entry. One load. Relaxed: may miss an Enter of
  // the same moment; that release is not noted.
  bool Awaited(const void* lock) const { return EntryOf(lock).waiting.load(std::memory_order_relaxed) != 0; }

  // Notes that `tid` begins to release the lock. Thread-safe and async-signal-safe.
  void Note(const void* lock, uint32_t tid, uint64_t now_ns) {
    Entry& entry = EntryOf(lock);
    // Relaxed: the release of the lock itself publishes the count to the thread that acquires it.
    entry.count.fetch_add(1, std::memory_order_relaxed);
    // Both releases pair with the acquires in Last: a thread that reads the new time finds `who` to be 0 or new.
    entry.who.store(0, std::memory_order_relaxed);
    entry.at_ns.store(now_ns, std::memory_order_release);
    uint64_t none = 0;
    entry.first_ns.compare_exchange_strong(none, now_ns, std::memory_order_relaxed);
    entry.who.store(TagOf(lock) | (tid & kTidMask), std::memory_order_release);
  }
  // Returns the last release of the entry. `who` is 0 if there is none, or if one is being noted at the moment.
  Release Last(const void* lock) const {
    const Entry& entry = EntryOf(lock);
    // Acquire pairs with the releases in Note. Relaxed: as there.
    Release last;
    last.count = entry.count.load(std::memory_order_relaxed);
    last.who = entry.who.load(std::memory_order_acquire);
    last.at_ns = entry.at_ns.load(std::memory_order_acquire);
    if (last.who != entry.who.load(std::memory_order_acquire)) last.who = 0;
    return last;
  }
  // Returns when a lock of the entry was first released since the last Enter; 0 if none was. Relaxed: as the count.
  uint64_t FirstNs(const void* lock) const { return EntryOf(lock).first_ns.load(std::memory_order_relaxed); }
  // Returns the tid; 0 if another lock was released, or if it is not known.
  static uint32_t TidOf(const Release& release, const void* lock) {
    return (release.who & ~kTidMask) == TagOf(lock) ? static_cast<uint32_t>(release.who & kTidMask) : 0;
  }

  // Requires that no other thread exists. Relaxed: no thread to pair with.
  void Clear() {
    for (Entry& entry : entries_) {
      entry.waiting.store(0, std::memory_order_relaxed);
      entry.count.store(0, std::memory_order_relaxed);
      entry.who.store(0, std::memory_order_relaxed);
      entry.at_ns.store(0, std::memory_order_relaxed);
      entry.first_ns.store(0, std::memory_order_relaxed);
    }
  }

 private:
  static constexpr unsigned kTidBits = 22;  // PID_MAX_LIMIT (include/linux/threads.h)
  static constexpr uint64_t kTidMask = (uint64_t{1} << kTidBits) - 1;
  static constexpr unsigned kIndexBits = 10;

  struct alignas(32) Entry {
    std::atomic<uint32_t> waiting{0}, count{0};
    std::atomic<uint64_t> who{0}, at_ns{0}, first_ns{0};
  };

  static uint64_t HashOf(const void* lock) { return base::Mix(reinterpret_cast<uintptr_t>(lock)); }
  static uint64_t TagOf(const void* lock) { return base::Mix(HashOf(lock) >> 1) & ~kTidMask; }
  Entry& EntryOf(const void* lock) { return entries_[HashOf(lock) >> (64 - kIndexBits)]; }
  const Entry& EntryOf(const void* lock) const { return entries_[HashOf(lock) >> (64 - kIndexBits)]; }

  Entry entries_[size_t{1} << kIndexBits];
};

}  // namespace perfkit::sys::locks
