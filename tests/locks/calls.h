// The interposed calls and the C library's own, as two tables of one type: a test runs the same script with both.
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

namespace perfkit::sys::locks {

struct Calls {
  int (*mutex_lock)(pthread_mutex_t*);
  int (*mutex_timedlock)(pthread_mutex_t*, const timespec*);
  int (*mutex_clocklock)(pthread_mutex_t*, clockid_t, const timespec*);
  int (*mutex_unlock)(pthread_mutex_t*);
  int (*rdlock)(pthread_rwlock_t*);
  int (*timedrdlock)(pthread_rwlock_t*, const timespec*);
  int (*clockrdlock)(pthread_rwlock_t*, clockid_t, const timespec*);
  int (*wrlock)(pthread_rwlock_t*);
  int (*timedwrlock)(pthread_rwlock_t*, const timespec*);
  int (*clockwrlock)(pthread_rwlock_t*, clockid_t, const timespec*);
  int (*rwlock_unlock)(pthread_rwlock_t*);
  int (*cond_wait)(pthread_cond_t*, pthread_mutex_t*);
  int (*cond_timedwait)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  int (*cond_clockwait)(pthread_cond_t*, pthread_mutex_t*, clockid_t, const timespec*);
  int (*cond_signal)(pthread_cond_t*);
  int (*cond_broadcast)(pthread_cond_t*);
  int (*semaphore_wait)(sem_t*);
  int (*semaphore_timedwait)(sem_t*, const timespec*);
  int (*semaphore_clockwait)(sem_t*, clockid_t, const timespec*);
  int (*semaphore_post)(sem_t*);
};

// As any code of the program calls them.
inline Calls Interposed() {
  return {pthread_mutex_lock,         pthread_mutex_timedlock,    pthread_mutex_clocklock,    pthread_mutex_unlock,
          pthread_rwlock_rdlock,      pthread_rwlock_timedrdlock, pthread_rwlock_clockrdlock, pthread_rwlock_wrlock,
          pthread_rwlock_timedwrlock, pthread_rwlock_clockwrlock, pthread_rwlock_unlock,      pthread_cond_wait,
          pthread_cond_timedwait,     pthread_cond_clockwait,     pthread_cond_signal,        pthread_cond_broadcast,
          sem_wait,                   sem_timedwait,              sem_clockwait,              sem_post};
}

// The newest version, in the libraries after the program itself.
template <class Call>
void FindOwn(Call*& call, const char* name) {
  call = reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
}

inline Calls Own() {
  Calls calls{};
  FindOwn(calls.mutex_lock, "pthread_mutex_lock");
  FindOwn(calls.mutex_timedlock, "pthread_mutex_timedlock");
  FindOwn(calls.mutex_clocklock, "pthread_mutex_clocklock");
  FindOwn(calls.mutex_unlock, "pthread_mutex_unlock");
  FindOwn(calls.rdlock, "pthread_rwlock_rdlock");
  FindOwn(calls.timedrdlock, "pthread_rwlock_timedrdlock");
  FindOwn(calls.clockrdlock, "pthread_rwlock_clockrdlock");
  FindOwn(calls.wrlock, "pthread_rwlock_wrlock");
  FindOwn(calls.timedwrlock, "pthread_rwlock_timedwrlock");
  FindOwn(calls.clockwrlock, "pthread_rwlock_clockwrlock");
  FindOwn(calls.rwlock_unlock, "pthread_rwlock_unlock");
  FindOwn(calls.cond_wait, "pthread_cond_wait");
  FindOwn(calls.cond_timedwait, "pthread_cond_timedwait");
  FindOwn(calls.cond_clockwait, "pthread_cond_clockwait");
  FindOwn(calls.cond_signal, "pthread_cond_signal");
  FindOwn(calls.cond_broadcast, "pthread_cond_broadcast");
  FindOwn(calls.semaphore_wait, "sem_wait");
  FindOwn(calls.semaphore_timedwait, "sem_timedwait");
  FindOwn(calls.semaphore_clockwait, "sem_clockwait");
  FindOwn(calls.semaphore_post, "sem_post");
  return calls;
}

// A time of `clock` in so many milliseconds; it may be in the past.
inline timespec In(clockid_t clock, long ms) {
  timespec time{};
  clock_gettime(clock, &time);
  const long ns = time.tv_nsec + ms % 1000 * 1'000'000;
  time.tv_sec += ms / 1000 + (ns >= 1'000'000'000 ? 1 : ns < 0 ? -1 : 0);
  time.tv_nsec = (ns + 1'000'000'000) % 1'000'000'000;
  return time;
}

inline constexpr timespec kInvalid{0, 1'000'000'000};

}  // namespace perfkit::sys::locks
