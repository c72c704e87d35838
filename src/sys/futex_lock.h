// Reads which thread holds the lock that a blocked thread waits for, from the lock itself, in memory of this process.
//
//   futex(address, operation, value, ...)    what the thread sleeps in: the value tells the kind of lock
//   the lock at this address ──> holder      glibc writes the holder's tid after a lock is taken, and removes it
//                                            before the lock is released
//
// The holder is unknown for semaphores, condition variables, barriers, locks that are robust or shared between
// processes, reader-writer locks that readers hold, and locks of other libraries unless they are priority-inheriting.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace perfkit::sys {

// The number of the system call.
extern const int32_t kFutexCall;
// The number of the call that goes on with a sleep, with a timeout, that a stop of the process has interrupted.
extern const int32_t kRestartCall;

// What a thread may wait for in a futex.
enum class FutexLock : uint8_t {
  kNone,                // no lock that says who holds it
  kMutex,               // a pthread mutex, not shared between processes, not robust
  kTimedMutex,          // the same, until a timeout
  kRwlock,              // a reader-writer lock that a writer has
  kPriorityInheriting,  // the kernel's own kind of lock
};

// Returns the kind of lock that this call seems to wait for. It need not be a lock: any program may call futex in this
// way.
FutexLock FutexLockOf(int64_t syscall, std::span<const uint64_t, 6> arguments);

// Returns the tid of the thread that holds the lock for which this call waits. Returns nullopt if it does not look like
// a lock, if its memory can't be read (which is safe to try), or if its holder changes at the moment. A thread that
// ended without a release is still its holder. The result counts only if the waiting thread does not run meanwhile.
std::optional<uint32_t> ReadLockHolder(int64_t syscall, std::span<const uint64_t, 6> arguments);

}  // namespace perfkit::sys
