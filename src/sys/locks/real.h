// glibc's own functions, which the interposed calls override; in a program with a sanitizer's runtime, that one's.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

#include <atomic>

#ifdef __GLIBC__

namespace perfkit::sys::locks {

// A function that is interposed. The C library's is looked up at the first call.
template <class Function>
class Real {
 public:
  // `sanitizer`: the function of a sanitizer, or nullptr.
  explicit constexpr Real(const char* name, Function* sanitizer, const char* version = nullptr)
      : name_(name), version_(version), sanitizer_(sanitizer) {}

  Function* operator()() noexcept {
    Function* const found = function_.load(std::memory_order_relaxed);  // Relaxed: all threads store the same value.
    return found != nullptr ? found : Find();
  }

 private:
  [[gnu::noinline, gnu::cold]] Function* Find() noexcept {
    Function* function = sanitizer_;
    if (!IsHidden(function)) {
      void* const found = version_ != nullptr ? dlvsym(RTLD_NEXT, name_, version_) : dlsym(RTLD_NEXT, name_);
      function = reinterpret_cast<Function*>(found);
    }
    function_.store(function, std::memory_order_relaxed);  // Relaxed: as above.
    return function;
  }
  // Returns true if this code hides a sanitizer's function from the program: both are in the program itself, as clang
  // links it. In all other cases the function is the next one of its name, or calls the next one, i.e. this library's.
  bool IsHidden(Function* function) const noexcept {
    Dl_info here{}, there{};
    return function != nullptr && dladdr(this, &here) != 0 && dladdr(reinterpret_cast<void*>(function), &there) != 0 &&
           here.dli_fbase == there.dli_fbase;
  }

  const char* const name_;
  const char* const version_;
  Function* const sanitizer_;
  std::atomic<Function*> function_{nullptr};
};

// `noexcept` is as in the C library's headers. Cancelling a thread, or ending it in a signal handler, unwinds its stack
// as an exception does. If a function here were noexcept but its libc function not, cancelling a thread in it would end
// the program. What noexcept functions call here is noexcept, too: then they have no table of exceptions (LSDA), and a
// thread that ends in such a wait is unwound through them, as through the C library's own.
using MutexCall = int(pthread_mutex_t*) noexcept;
using TimedMutexCall = int(pthread_mutex_t*, const timespec*) noexcept;
using ClockMutexCall = int(pthread_mutex_t*, clockid_t, const timespec*) noexcept;
using RwlockCall = int(pthread_rwlock_t*) noexcept;
using TimedRwlockCall = int(pthread_rwlock_t*, const timespec*) noexcept;
using ClockRwlockCall = int(pthread_rwlock_t*, clockid_t, const timespec*) noexcept;
using ConditionCall = int(pthread_cond_t*) noexcept;
using WaitCall = int(pthread_cond_t*, pthread_mutex_t*);
using TimedWaitCall = int(pthread_cond_t*, pthread_mutex_t*, const timespec*);
using ClockWaitCall = int(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
using SemaphoreCall = int(sem_t*);
using PostCall = int(sem_t*) noexcept;
using TimedSemaphoreCall = int(sem_t*, const timespec*);
using ClockSemaphoreCall = int(sem_t*, clockid_t, const timespec*);

// x86-64 has two versions of condition variables: programs that were linked since 2003 use the newer one.
#if defined(__x86_64__)
inline constexpr const char* kConditions = "GLIBC_2.3.2";
#else
inline constexpr const char* kConditions = nullptr;
#endif

// Declares a Real. The linker sets __interceptor_X to a sanitizer's function, or to nullptr if the program has none.
// clang links its runtimes into the program, where the look-up of the next function does not find them: ThreadSanitizer
// would not see the locks.
#define PERFKIT_REAL(Function, variable, name, version)   \
  extern "C" [[gnu::weak]] Function __interceptor_##name; \
  inline constinit Real<Function> variable(#name, __interceptor_##name, version)

PERFKIT_REAL(MutexCall, g_mutex_lock, pthread_mutex_lock, nullptr);
PERFKIT_REAL(TimedMutexCall, g_mutex_timedlock, pthread_mutex_timedlock, nullptr);
PERFKIT_REAL(ClockMutexCall, g_mutex_clocklock, pthread_mutex_clocklock, nullptr);
PERFKIT_REAL(MutexCall, g_mutex_unlock, pthread_mutex_unlock, nullptr);
PERFKIT_REAL(RwlockCall, g_rdlock, pthread_rwlock_rdlock, nullptr);
PERFKIT_REAL(TimedRwlockCall, g_timedrdlock, pthread_rwlock_timedrdlock, nullptr);
PERFKIT_REAL(ClockRwlockCall, g_clockrdlock, pthread_rwlock_clockrdlock, nullptr);
PERFKIT_REAL(RwlockCall, g_wrlock, pthread_rwlock_wrlock, nullptr);
PERFKIT_REAL(TimedRwlockCall, g_timedwrlock, pthread_rwlock_timedwrlock, nullptr);
PERFKIT_REAL(ClockRwlockCall, g_clockwrlock, pthread_rwlock_clockwrlock, nullptr);
PERFKIT_REAL(RwlockCall, g_rwlock_unlock, pthread_rwlock_unlock, nullptr);
PERFKIT_REAL(WaitCall, g_cond_wait, pthread_cond_wait, kConditions);
PERFKIT_REAL(TimedWaitCall, g_cond_timedwait, pthread_cond_timedwait, kConditions);
PERFKIT_REAL(ClockWaitCall, g_cond_clockwait, pthread_cond_clockwait, nullptr);
PERFKIT_REAL(ConditionCall, g_cond_signal, pthread_cond_signal, kConditions);
PERFKIT_REAL(ConditionCall, g_cond_broadcast, pthread_cond_broadcast, kConditions);
PERFKIT_REAL(SemaphoreCall, g_sem_wait, sem_wait, nullptr);
PERFKIT_REAL(TimedSemaphoreCall, g_sem_timedwait, sem_timedwait, nullptr);
PERFKIT_REAL(ClockSemaphoreCall, g_sem_clockwait, sem_clockwait, nullptr);
PERFKIT_REAL(PostCall, g_sem_post, sem_post, nullptr);

#undef PERFKIT_REAL

}  // namespace perfkit::sys::locks

#endif
