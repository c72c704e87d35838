// Which thread holds the lock that a blocked thread waits for, as the words of the lock say it: memory of this process.
//
//   futex(address, operation, value, ...)    what the thread sleeps in: the value tells the kind of lock
//   the lock at this address ──> holder      glibc writes the holder's number after a lock is taken, and removes it
//                                            before the lock is released
//
// Semaphores, condition variables, barriers and locks of other libraries have no holder that could be read; a
// reader-writer lock has one only while a writer has it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace perfkit::sys {

// The number of the system call.
extern const int32_t kFutexCall;

// What a thread may wait for in a futex.
enum class FutexLock : uint8_t {
  kNone,                // no lock that says who holds it
  kMutex,               // a pthread mutex, not shared between processes, not robust
  kTimedMutex,          // the same, until a timeout
  kRwlock,              // a reader-writer lock that a writer has
  kPriorityInheriting,  // the kernel's own kind of lock
};

// Returns the kind of lock that this call seems to wait for. It may be none: any program may call a futex in this way.
FutexLock FutexLockOf(int64_t syscall, std::span<const uint64_t, 6> arguments);

// Returns the number of the thread that holds the lock in which this call waits; nullopt if that is no lock, or one
// that changes hands at the moment. A thread that ended without a release is still its holder. The result counts only
// if the waiting thread does not run meanwhile.
std::optional<uint32_t> ReadLockHolder(int64_t syscall, std::span<const uint64_t, 6> arguments);

}  // namespace perfkit::sys
