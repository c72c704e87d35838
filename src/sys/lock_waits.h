// The waits for locks that perfkit::locks has recorded, if the program links or preloads it.
//
// Its library (src/sys/locks) defines perfkit_lock_waits. The symbol is weak here, so nothing depends on that library.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace perfkit::sys {

// The address that a thread sleeps at (FUTEX_WAIT) lies within the lock.
inline constexpr size_t kMutexBytes = sizeof(pthread_mutex_t), kConditionBytes = sizeof(pthread_cond_t);

// What a thread waited in.
enum class LockKind : uint8_t { kMutex, kRwlock, kCondition, kSemaphore };

// A wait for a lock, from the call to its return. Times are of CLOCK_MONOTONIC, as this process sees it; tids are those
// of the kernel.
struct LockWait {
  uint64_t lock = 0;   // address
  uint64_t mutex = 0;  // of a condition: the mutex that the call locks again at its end
  uint64_t from_ns = 0, to_ns = 0;
  uint64_t released_ns = 0;  // when `releaser` began to release it, within the wait; 0 if `releaser` is 0
  // Of a condition: when it was first signalled within the wait, by any thread, or the timeout that has ended the wait.
  // What the thread waits for after that is the mutex. 0 if unknown.
  uint64_t signalled_ns = 0;
  uint32_t tid = 0;          // of the waiting thread
  // The thread that held it when the wait began; 0 if unknown: conditions, semaphores, locks that readers hold, and
  // locks that may be shared with other processes.
  uint32_t holder = 0;
  // The thread of this process that released, signalled or posted it last during this wait; 0 if unknown, and if the
  // wait did not end by that.
  uint32_t releaser = 0;
  LockKind kind = LockKind::kMutex;
  bool acquired = false;  // false: a timeout, a signal handler, or an error ended the wait
  // `holder` had it all the time from when the waiting thread first slept in the call until released_ns.
  bool has_one_holder = false;
};

// One reader at a time in a process. `take` and `stop` are for the reader that `start` has succeeded for.
struct LockWaitSource {
  // Starts to record waits that begin from now on and last `threshold_ns` or longer. Returns false if there is a reader
  // already.
  bool (*start)(uint64_t threshold_ns);
  // Takes the next record; those of one thread come in the order in which its waits ended. Returns false if there is
  // none, or if the next one is still being written.
  bool (*take)(LockWait& wait);
  // Returns how many records were dropped since `start`, because the buffer was full.
  uint64_t (*lost)();
  // Stops recording. Then another reader may start.
  void (*stop)();
  // In a forked child, which has one thread: forgets the parent's reader and records. Async-signal-safe.
  void (*on_forked_child)();
};

}  // namespace perfkit::sys

// The function itself is null if the program has no such library.
extern "C" [[gnu::weak]] const perfkit::sys::LockWaitSource* perfkit_lock_waits();

namespace perfkit::sys {

// Returns nullptr if nothing records waits for locks.
inline const LockWaitSource* LockWaits() { return perfkit_lock_waits == nullptr ? nullptr : perfkit_lock_waits(); }

}  // namespace perfkit::sys
