// Offsets are those of glibc's own headers. Values: 2 is locked, with waiters (glibc's lll_lock); 3 is taken by a
// writer (1 | PTHREAD_RWLOCK_FUTEX_USED). A priority-inheriting futex contains its owner's tid by the kernel's ABI
// (futex(2)), whatever program uses it.
//
// Robust mutexes are left out: glibc marks all of them as shared between processes (pthread_mutex_init), and a thread
// of another process may have the same tid as one of this process.
#include "src/sys/futex_lock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>

#include <cstddef>

#include "src/sys/own_memory.h"

namespace perfkit::sys {
namespace {

constexpr uint64_t kLockPi2 = 13;  // FUTEX_LOCK_PI2, Linux 5.14
constexpr uint32_t kLockedWithWaiters = 2, kTakenByWriter = 3;

template <class T>
bool CopyFrom(uint64_t address, T& to) {
  return CopyOwn(address, &to, sizeof to);
}

#if defined(__GLIBC__)
// Returns 0 if the memory is no mutex with an owner. The users of a mutex are its owner and the threads that wait for
// conditions with it. A larger number than kMaxUsers is taken for other data, e.g. a part of a pointer.
uint32_t OwnerOfMutex(uint64_t address) {
  constexpr unsigned kTypes = 3, kElision = 0x300, kMaxUsers = 20'000;
  pthread_mutex_t mutex;
  if (address % alignof(pthread_mutex_t) != 0 || !CopyFrom(address, mutex)) return 0;
  const auto& data = mutex.__data;
  const bool is_plain = (static_cast<unsigned>(data.__kind) & ~(kTypes | kElision)) == 0;
  const bool has_users = data.__nusers != 0 && data.__nusers <= kMaxUsers;
  const bool is_held = static_cast<uint32_t>(data.__lock) == kLockedWithWaiters;
  return is_plain && has_users && is_held ? static_cast<uint32_t>(data.__owner) : 0;
}

// A thread may wait in either of two words of the lock. Their alignments differ, which tells them apart.
uint32_t WriterOf(uint64_t address) {
  using Lock = decltype(pthread_rwlock_t{}.__data);
  constexpr uint64_t kPhase = offsetof(Lock, __wrphase_futex), kWriters = offsetof(Lock, __writers_futex);
  constexpr uint64_t kAlignment = alignof(pthread_rwlock_t);
  const uint64_t lock_address = address - (address % kAlignment == kPhase % kAlignment ? kPhase : kWriters);
  pthread_rwlock_t lock;
  if (lock_address % kAlignment != 0 || !CopyFrom(lock_address, lock)) return 0;
  return static_cast<uint32_t>(lock.__data.__cur_writer);
}
#else
uint32_t OwnerOfMutex(uint64_t) { return 0; }
uint32_t WriterOf(uint64_t) { return 0; }
#endif

uint32_t OwnerOfFutex(uint64_t address) {
  uint32_t word = 0;
  return CopyFrom(address, word) ? word & FUTEX_TID_MASK : 0;
}

// 0: none.
uint32_t ReadOnce(FutexLock lock, uint64_t address) {
  switch (lock) {
    case FutexLock::kNone: return 0;
    case FutexLock::kMutex:
    case FutexLock::kTimedMutex: return OwnerOfMutex(address);
    case FutexLock::kRwlock: return WriterOf(address);
    case FutexLock::kPriorityInheriting: return OwnerOfFutex(address);
  }
  return 0;
}

}  // namespace

const int32_t kFutexCall = SYS_futex;
const int32_t kRestartCall = SYS_restart_syscall;

// A futex without FUTEX_PRIVATE_FLAG may be shared with other processes.
FutexLock FutexLockOf(int64_t syscall, std::span<const uint64_t, 6> arguments) {
  const auto operation = static_cast<uint32_t>(arguments[1]) & static_cast<uint32_t>(FUTEX_CMD_MASK);
  const auto value = static_cast<uint32_t>(arguments[2]);
  if (syscall != SYS_futex || (arguments[1] & FUTEX_PRIVATE_FLAG) == 0) return FutexLock::kNone;
  if (operation == FUTEX_LOCK_PI || operation == kLockPi2) return FutexLock::kPriorityInheriting;
  if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET) return FutexLock::kNone;
  if (value == kTakenByWriter) return FutexLock::kRwlock;
  if (value != kLockedWithWaiters) return FutexLock::kNone;
  return operation == FUTEX_WAIT ? FutexLock::kMutex : FutexLock::kTimedMutex;
}

// Reads twice: if both results are equal, the lock did not change in between.
std::optional<uint32_t> ReadLockHolder(int64_t syscall, std::span<const uint64_t, 6> arguments) {
  const FutexLock lock = FutexLockOf(syscall, arguments);
  const uint32_t holder = ReadOnce(lock, arguments[0]);
  if (holder == 0 || ReadOnce(lock, arguments[0]) != holder) return std::nullopt;
  return holder;
}

}  // namespace perfkit::sys
