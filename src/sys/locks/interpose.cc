// perfkit::locks: defines the C library's calls that wait for locks, for the whole process.
//
// A program's definitions, or those of a preloaded library, override libc's for all libraries of the process, also for
// calls that libstdc++ makes. While no session takes the records, each call only calls the C library's own function.
// While one does, a call that may wait for a lock first calls the C library's own trylock. If that succeeds, the call
// did not wait. Otherwise it is timed. A wait for a condition is always timed. A call that releases a lock notes the
// release if threads wait for the lock. A mutex's own word shows whether threads wait; for all other locks, the waiting
// threads enter the lock in a table.
//
// The program must not notice the difference: a try has to have the same effects as the call itself. So:
//   * a call with an invalid time goes straight to the C library, which may refuse it before it looks at the lock;
//   * a wait for a semaphore tests for cancellation first, as the C library's does, and a failed try leaves errno as it
//     was;
//   * every result of the try but "busy" is returned, e.g. that the owner of a robust mutex has died.
// Releases of mutexes that are robust, have a priority ceiling, or are shared between processes are not noted.
//
// In a program with a sanitizer's runtime, which interposes these calls itself, that one's are called in place of the C
// library's. If this file is compiled for such a sanitizer, or for a C library other than glibc, nothing is interposed.
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "src/base/sanitizers.h"
#include "src/sys/locks/real.h"
#include "src/sys/locks/recorder.h"

#if !defined(__GLIBC__) || PERFKIT_SANITIZED

namespace perfkit::sys::locks {
void CallRecorded(bool) noexcept {}
}  // namespace perfkit::sys::locks

extern "C" __attribute__((visibility("default"))) const perfkit::sys::LockWaitSource* perfkit_lock_waits() {
  return nullptr;
}

#else

namespace perfkit::sys::locks {
namespace {

// Offsets and bits are those of glibc's headers: struct_mutex, and the mutex kinds of pthread_mutex_init.
constexpr unsigned kTypes = 3;                    // normal, recursive, errorcheck, adaptive
constexpr unsigned kPlainKinds = kTypes | 0x300;  // with the flags of elision
constexpr unsigned kRobust = 16, kInheriting = 32, kShared = 128;

unsigned KindOf(const pthread_mutex_t* mutex) noexcept {
  return static_cast<unsigned>(__atomic_load_n(&mutex->__data.__kind, __ATOMIC_RELAXED));
}

// Returns the tid of the holder; 0 if there is none, or if it may be a thread of another process. All robust mutexes
// are shared (pthread_mutex_init). The C library writes the tid after it has locked the mutex, and removes it before it
// unlocks it. So 0 may only mean that the holder is about to write it: then this reads again.
uint32_t HolderOf(const pthread_mutex_t* mutex) noexcept {
  constexpr int kTries = 4;
  if ((KindOf(mutex) & (kRobust | kShared)) != 0) return 0;
  for (int i = 0; i < kTries; ++i) {
    const int owner = __atomic_load_n(&mutex->__data.__owner, __ATOMIC_RELAXED);
    if (owner != 0) return static_cast<uint32_t>(owner);
  }
  return 0;
}

uint32_t HolderOf(const pthread_rwlock_t* lock) noexcept {
  if (lock->__data.__shared != 0) return 0;
  return static_cast<uint32_t>(__atomic_load_n(&lock->__data.__cur_writer, __ATOMIC_RELAXED));
}

// Returns the mutex's futex word: 1 means locked without waiters, 2 locked with waiters (glibc's lll_lock). Mutexes of
// other kinds, e.g. robust ones, also have larger values.
unsigned WordOf(const pthread_mutex_t* mutex) noexcept {
  return static_cast<unsigned>(__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED));
}

bool HasWaiters(const pthread_mutex_t* mutex) noexcept {
  constexpr unsigned kLockedWithWaiters = 2, kFutexWaiters = 0x8000'0000;  // linux/futex.h: FUTEX_WAITERS
  const unsigned kind = KindOf(mutex), word = WordOf(mutex);
  if ((kind & ~kPlainKinds) == 0) return word == kLockedWithWaiters;
  return (kind & ~(kPlainKinds | kInheriting)) == 0 && (word & kFutexWaiters) != 0;
}

// Returns true if an unlock by the holder does not release the mutex, because it has locked it more than once.
bool StaysLocked(const pthread_mutex_t* mutex) noexcept {
  return (KindOf(mutex) & kTypes) == unsigned{PTHREAD_MUTEX_RECURSIVE} && mutex->__data.__count > 1;
}

// The tid of the holder, which is the calling thread, is known without a system call.
void NoteUnlock(const pthread_mutex_t* mutex) noexcept {
  if (IsRecording() && HasWaiters(mutex) && !StaysLocked(mutex)) NoteRelease(mutex, HolderOf(mutex));
}

// `time` may be null although the headers declare it nonnull: to some calls of the C library, null means no timeout.
// The asm keeps the compiler from dropping the test.
bool IsValid(const timespec* time) noexcept {
  constexpr long kSecond = 1'000'000'000;
  asm("" : "+r"(time));
  return time != nullptr && time->tv_nsec >= 0 && time->tv_nsec < kSecond;
}
bool IsValid(clockid_t clock, const timespec* time) noexcept {
  return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && IsValid(time);
}

// Calls `call`, which waits, because the C library's trylock has returned "busy", and records that.
template <class Call>
[[gnu::noinline]] int Wait(pthread_mutex_t* mutex, Call call) noexcept {
  if (!IsRecording()) return call();
  RecordedWait wait(mutex, LockKind::kMutex, HolderOf(mutex), false);
  const int error = call();
  wait.End(error == 0 || error == EOWNERDEAD);
  return error;
}

// pthread_mutex_lock and pthread_mutex_unlock while waits are recorded.
int LockRecorded(pthread_mutex_t* mutex) noexcept {
  if (!IsRecording()) return g_mutex_lock()(mutex);
  const int error = pthread_mutex_trylock(mutex);
  if (error != EBUSY) [[likely]]
    return error;
  return Wait(mutex, [=]() noexcept { return g_mutex_lock()(mutex); });
}
int UnlockRecorded(pthread_mutex_t* mutex) noexcept {
  if (WordOf(mutex) > 1) NoteUnlock(mutex);
  return g_mutex_unlock()(mutex);
}

// The same before FindAll. They are functions of their own, so that FindAll replaces none that Start has stored.
int LockEarly(pthread_mutex_t* mutex) noexcept { return LockRecorded(mutex); }
int UnlockEarly(pthread_mutex_t* mutex) noexcept { return UnlockRecorded(mutex); }

// The functions that pthread_mutex_lock and pthread_mutex_unlock jump to. While nothing is recorded, they are the C
// library's own: an idle call costs one load and one jump. Relaxed: each of the functions always locks or unlocks the
// mutex.
constinit std::atomic<MutexCall*> g_lock_target{LockEarly}, g_unlock_target{UnlockEarly};

template <class Call>
[[gnu::noinline]] int Wait(pthread_rwlock_t* lock, Call call) noexcept {
  if (!IsRecording()) return call();
  RecordedWait wait(lock, LockKind::kRwlock, HolderOf(lock), true);
  const int error = call();
  wait.End(error == 0);
  return error;
}

// The clock of pthread_cond_timedwait: bit 1 of __wrefs, by pthread_condattr_setclock (glibc's
// __PTHREAD_COND_CLOCK_MONOTONIC_MASK).
clockid_t ClockOf(const pthread_cond_t* condition) noexcept {
  constexpr unsigned kMonotonic = 2;
  return (__atomic_load_n(&condition->__data.__wrefs, __ATOMIC_RELAXED) & kMonotonic) != 0 ? CLOCK_MONOTONIC
                                                                                           : CLOCK_REALTIME;
}

// Returns the time of CLOCK_MONOTONIC at which `clock` has `time`, at least 1. Wraps around if there is none.
uint64_t MonotonicNs(clockid_t clock, const timespec& time) noexcept {
  constexpr uint64_t kNsPerS = 1'000'000'000;
  const auto ns = [](const timespec& of) {
    return static_cast<uint64_t>(of.tv_sec) * kNsPerS + static_cast<uint64_t>(of.tv_nsec);
  };
  if (clock == CLOCK_MONOTONIC) return std::max<uint64_t>(ns(time), 1);
  timespec now{}, monotonic{};
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_MONOTONIC, &monotonic);
  return std::max<uint64_t>(ns(monotonic) - (ns(now) - ns(time)), 1);
}

// `clock`: that of `time`; nullopt means the condition's. `time`: the timeout; nullptr means none.
template <class Call>
int Wait(pthread_cond_t* condition, pthread_mutex_t* mutex, std::optional<clockid_t> clock, const timespec* time,
         Call call) {
  if (!IsRecording()) return call();
  if (WordOf(mutex) > 1) NoteUnlock(mutex);
  RecordedWait wait(condition, LockKind::kCondition, 0, true, mutex);
  const int error = call();
  const bool timed_out = error == ETIMEDOUT;
  wait.End(error == 0, timed_out ? MonotonicNs(clock ? *clock : ClockOf(condition), *time) : 0);
  return error;
}

template <class Call>
int Wait(sem_t* semaphore, Call call) {
  if (!IsRecording()) return call();
  RecordedWait wait(semaphore, LockKind::kSemaphore, 0, true);
  const int result = call();
  wait.End(result == 0);
  return result;
}

// A cancellation point, as sem_wait, also if it succeeds. Preserves errno if it fails.
bool TryWait(sem_t* semaphore) {
  pthread_testcancel();
  const int saved = errno;
  if (sem_trywait(semaphore) == 0) return true;
  errno = saved;
  return false;
}

// Looks all functions up before main: the first call of sem_post may be in a signal handler, where dlsym must not be
// called. Then has the calls of mutexes jump to theirs.
[[gnu::constructor(101)]] void FindAll() {
  g_mutex_lock(), g_mutex_timedlock(), g_mutex_clocklock(), g_mutex_unlock();
  g_rdlock(), g_timedrdlock(), g_clockrdlock(), g_wrlock(), g_timedwrlock(), g_clockwrlock(), g_rwlock_unlock();
  g_cond_wait(), g_cond_timedwait(), g_cond_clockwait(), g_cond_signal(), g_cond_broadcast();
  g_sem_wait(), g_sem_timedwait(), g_sem_clockwait(), g_sem_post();
  MutexCall *lock = LockEarly, *unlock = UnlockEarly;
  g_lock_target.compare_exchange_strong(lock, g_mutex_lock(), std::memory_order_relaxed);
  g_unlock_target.compare_exchange_strong(unlock, g_mutex_unlock(), std::memory_order_relaxed);
}

}  // namespace

void CallRecorded(bool recorded) noexcept {
  g_lock_target.store(recorded ? LockRecorded : g_mutex_lock(), std::memory_order_relaxed);
  g_unlock_target.store(recorded ? UnlockRecorded : g_mutex_unlock(), std::memory_order_relaxed);
}

}  // namespace perfkit::sys::locks

using namespace perfkit::sys::locks;

extern "C" {
#pragma GCC visibility push(default)

const perfkit::sys::LockWaitSource* perfkit_lock_waits() { return &Source(); }

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept { return g_lock_target.load(std::memory_order_relaxed)(mutex); }

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* time) noexcept {
  if (!IsRecording() || !IsValid(time)) return g_mutex_timedlock()(mutex, time);
  const int error = pthread_mutex_trylock(mutex);
  return error != EBUSY ? error : Wait(mutex, [=]() noexcept { return g_mutex_timedlock()(mutex, time); });
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock, const timespec* time) noexcept {
  if (!IsRecording() || !IsValid(clock, time)) return g_mutex_clocklock()(mutex, clock, time);
  const int error = pthread_mutex_trylock(mutex);
  return error != EBUSY ? error : Wait(mutex, [=]() noexcept { return g_mutex_clocklock()(mutex, clock, time); });
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  return g_unlock_target.load(std::memory_order_relaxed)(mutex);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  if (!IsRecording()) return g_rdlock()(lock);
  const int error = pthread_rwlock_tryrdlock(lock);
  return error != EBUSY ? error : Wait(lock, [=]() noexcept { return g_rdlock()(lock); });
}

int pthread_rwlock_timedrdlock(pthread_rwlock_t* lock, const timespec* time) noexcept {
  if (!IsRecording() || !IsValid(time)) return g_timedrdlock()(lock, time);
  const int error = pthread_rwlock_tryrdlock(lock);
  return error != EBUSY ? error : Wait(lock, [=]() noexcept { return g_timedrdlock()(lock, time); });
}

int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) noexcept {
  if (!IsRecording() || !IsValid(clock, time)) return g_clockrdlock()(lock, clock, time);
  const int error = pthread_rwlock_tryrdlock(lock);
  return error != EBUSY ? error : Wait(lock, [=]() noexcept { return g_clockrdlock()(lock, clock, time); });
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  if (!IsRecording()) return g_wrlock()(lock);
  const int error = pthread_rwlock_trywrlock(lock);
  return error != EBUSY ? error : Wait(lock, [=]() noexcept { return g_wrlock()(lock); });
}

int pthread_rwlock_timedwrlock(pthread_rwlock_t* lock, const timespec* time) noexcept {
  if (!IsRecording() || !IsValid(time)) return g_timedwrlock()(lock, time);
  const int error = pthread_rwlock_trywrlock(lock);
  return error != EBUSY ? error : Wait(lock, [=]() noexcept { return g_timedwrlock()(lock, time); });
}

int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock, clockid_t clock, const timespec* time) noexcept {
  if (!IsRecording() || !IsValid(clock, time)) return g_clockwrlock()(lock, clock, time);
  const int error = pthread_rwlock_trywrlock(lock);
  return error != EBUSY ? error : Wait(lock, [=]() noexcept { return g_clockwrlock()(lock, clock, time); });
}

int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  if (IsAwaited(lock)) [[unlikely]]
    NoteRelease(lock);
  return g_rwlock_unlock()(lock);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  return Wait(condition, mutex, std::nullopt, nullptr, [=] { return g_cond_wait()(condition, mutex); });
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* time) {
  return Wait(condition, mutex, std::nullopt, time, [=] { return g_cond_timedwait()(condition, mutex, time); });
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock, const timespec* time) {
  return Wait(condition, mutex, clock, time, [=] { return g_cond_clockwait()(condition, mutex, clock, time); });
}

int pthread_cond_signal(pthread_cond_t* condition) noexcept {
  if (IsAwaited(condition)) NoteRelease(condition);
  return g_cond_signal()(condition);
}

int pthread_cond_broadcast(pthread_cond_t* condition) noexcept {
  if (IsAwaited(condition)) NoteRelease(condition);
  return g_cond_broadcast()(condition);
}

int sem_wait(sem_t* semaphore) {
  if (!IsRecording()) return g_sem_wait()(semaphore);
  return TryWait(semaphore) ? 0 : Wait(semaphore, [=] { return g_sem_wait()(semaphore); });
}

int sem_timedwait(sem_t* semaphore, const timespec* time) {
  if (!IsRecording() || !IsValid(time)) return g_sem_timedwait()(semaphore, time);
  return TryWait(semaphore) ? 0 : Wait(semaphore, [=] { return g_sem_timedwait()(semaphore, time); });
}

int sem_clockwait(sem_t* semaphore, clockid_t clock, const timespec* time) {
  if (!IsRecording() || !IsValid(clock, time)) return g_sem_clockwait()(semaphore, clock, time);
  return TryWait(semaphore) ? 0 : Wait(semaphore, [=] { return g_sem_clockwait()(semaphore, clock, time); });
}

int sem_post(sem_t* semaphore) noexcept {
  if (IsAwaited(semaphore)) [[unlikely]]
    NoteRelease(semaphore);
  return g_sem_post()(semaphore);
}

#pragma GCC visibility pop
}  // extern "C"

#endif
