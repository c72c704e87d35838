// The interposed calls against the C library's own: the same scripts with both, the same results, for each kind of lock
// and each documented error. Twice: while nothing records, and while waits are recorded.
#include <errno.h>
#include <limits.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/locks/calls.h"
#include "tests/locks/reader.h"

namespace perfkit::sys::locks {
namespace {

// Results of calls, in their order.
using Results = std::vector<int>;

// Compares what a script does with both tables. Once before: glibc refuses the first priority-protected mutex that a thread
// locks (EINVAL, 2.36), and takes it from then on.
void Compare(const std::function<Results(const Calls&)>& script) {
  (void)script(Own());
  const Results expected = script(Own());
  CHECK(script(Interposed()) == expected);
  const Reader reader;
  CHECK(script(Interposed()) == expected);
}

struct MutexKind {
  int type = PTHREAD_MUTEX_NORMAL, protocol = PTHREAD_PRIO_NONE, robust = PTHREAD_MUTEX_STALLED,
      shared = PTHREAD_PROCESS_PRIVATE;
};

class Mutex {
 public:
  explicit Mutex(const MutexKind& kind) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, kind.type);
    pthread_mutexattr_setprotocol(&attributes, kind.protocol);
    pthread_mutexattr_setrobust(&attributes, kind.robust);
    pthread_mutexattr_setpshared(&attributes, kind.shared);
    REQUIRE(pthread_mutex_init(&mutex_, &attributes) == 0);
    pthread_mutexattr_destroy(&attributes);
  }
  pthread_mutex_t* get() { return &mutex_; }

 private:
  pthread_mutex_t mutex_;
};

std::vector<MutexKind> MutexKinds() {
  std::vector<MutexKind> kinds;
  constexpr int kTypes[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK,
                            PTHREAD_MUTEX_ADAPTIVE_NP};
  for (const int type : kTypes) {
    for (const int protocol : {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT, PTHREAD_PRIO_PROTECT}) {
      for (const int robust : {PTHREAD_MUTEX_STALLED, PTHREAD_MUTEX_ROBUST}) {
        for (const int shared : {PTHREAD_PROCESS_PRIVATE, PTHREAD_PROCESS_SHARED}) {
          if (protocol == PTHREAD_PRIO_PROTECT && robust == PTHREAD_MUTEX_ROBUST) continue;  // pthread_mutex_init: ENOTSUP
          kinds.push_back({type, protocol, robust, shared});
        }
      }
    }
  }
  return kinds;
}

std::string Text(const MutexKind& kind) {
  return "type " + std::to_string(kind.type) + " protocol " + std::to_string(kind.protocol) + " robust " +
         std::to_string(kind.robust) + " shared " + std::to_string(kind.shared);
}

void OnOtherThread(const std::function<void()>& run) { std::thread(run).join(); }

// Calls with a timeout, valid and not, each followed by an unlock if it has locked.
void TryTimes(const Calls& calls, pthread_mutex_t* mutex, Results& results) {
  const auto add = [&](int error) {
    results.push_back(error);
    if (error == 0) results.push_back(calls.mutex_unlock(mutex));
  };
  const timespec past = In(CLOCK_REALTIME, -1000), soon = In(CLOCK_REALTIME, 2), soon_monotonic = In(CLOCK_MONOTONIC, 2);
  const timespec negative{-1, 0}, invalid{soon.tv_sec + 1, -1};
  for (const timespec& time : {past, soon, negative, kInvalid, invalid}) add(calls.mutex_timedlock(mutex, &time));
  add(calls.mutex_clocklock(mutex, CLOCK_MONOTONIC, &soon_monotonic));
  add(calls.mutex_clocklock(mutex, CLOCK_REALTIME, &past));
  add(calls.mutex_clocklock(mutex, CLOCK_MONOTONIC, &kInvalid));
  add(calls.mutex_clocklock(mutex, CLOCK_PROCESS_CPUTIME_ID, &past));
}

TEST_CASE("mutexes: free, held by another thread, held by this one", "[locks][semantics][law]") {
  for (const MutexKind& kind : MutexKinds()) {
    INFO(Text(kind));
    Compare([&](const Calls& calls) {
      Results results;
      Mutex mutex(kind);
      TryTimes(calls, mutex.get(), results);
      results.push_back(calls.mutex_lock(mutex.get()));
      OnOtherThread([&] {
        TryTimes(calls, mutex.get(), results);
        if (kind.type == PTHREAD_MUTEX_ERRORCHECK || kind.robust == PTHREAD_MUTEX_ROBUST) {
          results.push_back(calls.mutex_unlock(mutex.get()));  // EPERM
        }
      });
      TryTimes(calls, mutex.get(), results);  // recursive: counts; errorcheck: EDEADLK; others: until the timeout
      const bool may_lock_again = kind.type == PTHREAD_MUTEX_RECURSIVE || kind.type == PTHREAD_MUTEX_ERRORCHECK;
      if (may_lock_again) {
        const int error = calls.mutex_lock(mutex.get());
        results.push_back(error);
        if (error == 0) results.push_back(calls.mutex_unlock(mutex.get()));
      }
      results.push_back(calls.mutex_unlock(mutex.get()));
      if (kind.type == PTHREAD_MUTEX_ERRORCHECK) results.push_back(calls.mutex_unlock(mutex.get()));
      OnOtherThread([&] {  // it is free again
        results.push_back(calls.mutex_lock(mutex.get()));
        results.push_back(calls.mutex_unlock(mutex.get()));
      });
      results.push_back(pthread_mutex_destroy(mutex.get()));
      return results;
    });
  }
}

TEST_CASE("mutexes: the owner has died, with and without a repair", "[locks][semantics][law]") {
  for (const MutexKind& kind : MutexKinds()) {
    if (kind.robust != PTHREAD_MUTEX_ROBUST) continue;
    for (const bool repairs : {true, false}) {
      for (const bool timed : {true, false}) {
        INFO(Text(kind) << " repairs " << repairs << " timed " << timed);
        Compare([&](const Calls& calls) {
          Results results;
          Mutex mutex(kind);
          const auto lock = [&] {
            const timespec soon = In(CLOCK_REALTIME, 1000);
            return timed ? calls.mutex_timedlock(mutex.get(), &soon) : calls.mutex_lock(mutex.get());
          };
          OnOtherThread([&] { results.push_back(calls.mutex_lock(mutex.get())); });
          results.push_back(lock());  // EOWNERDEAD
          if (repairs) results.push_back(pthread_mutex_consistent(mutex.get()));
          results.push_back(calls.mutex_unlock(mutex.get()));
          results.push_back(lock());  // 0, or ENOTRECOVERABLE
          if (results.back() == 0) results.push_back(calls.mutex_unlock(mutex.get()));
          return results;
        });
      }
    }
  }
}

TEST_CASE("mutexes: a waiting thread gets it from an owner that dies", "[locks][semantics][law]") {
  for (const int protocol : {PTHREAD_PRIO_NONE, PTHREAD_PRIO_INHERIT}) {
    Compare([&](const Calls& calls) {
      Results results;
      Mutex mutex({.protocol = protocol, .robust = PTHREAD_MUTEX_ROBUST});
      std::atomic<bool> held{false};
      const uint32_t waiter = ThisThread();
      std::thread owner([&] {
        results.push_back(calls.mutex_lock(mutex.get()));
        held = true;
        AwaitBlocked(waiter, mutex.get(), sizeof(pthread_mutex_t));
      });
      while (!held) std::this_thread::yield();
      results.push_back(calls.mutex_lock(mutex.get()));
      owner.join();
      results.push_back(calls.mutex_unlock(mutex.get()));
      return results;
    });
  }
}

TEST_CASE("mutexes: too many recursions, and a kind that is none", "[locks][semantics][law]") {
  Compare([](const Calls& calls) {
    Results results;
    Mutex mutex({.type = PTHREAD_MUTEX_RECURSIVE});
    results.push_back(calls.mutex_lock(mutex.get()));
    mutex.get()->__data.__count = UINT_MAX;
    results.push_back(calls.mutex_lock(mutex.get()));
    const timespec soon = In(CLOCK_REALTIME, 1);
    results.push_back(calls.mutex_timedlock(mutex.get(), &soon));
    return results;
  });
  Compare([](const Calls& calls) {
    Results results;
    Mutex mutex({});
    mutex.get()->__data.__kind = 15;
    const timespec soon = In(CLOCK_REALTIME, 1);
    results.push_back(calls.mutex_lock(mutex.get()));
    results.push_back(calls.mutex_timedlock(mutex.get(), &soon));
    results.push_back(calls.mutex_unlock(mutex.get()));
    return results;
  });
}

void TryTimes(const Calls& calls, pthread_rwlock_t* lock, Results& results) {
  const auto add = [&](int error) {
    results.push_back(error);
    if (error == 0) results.push_back(calls.rwlock_unlock(lock));
  };
  const timespec past = In(CLOCK_REALTIME, -1000), soon = In(CLOCK_REALTIME, 2), soon_monotonic = In(CLOCK_MONOTONIC, 2);
  for (const timespec& time : {past, soon, kInvalid}) {
    add(calls.timedrdlock(lock, &time));
    add(calls.timedwrlock(lock, &time));
  }
  add(calls.clockrdlock(lock, CLOCK_MONOTONIC, &soon_monotonic));
  add(calls.clockwrlock(lock, CLOCK_MONOTONIC, &soon_monotonic));
  add(calls.clockrdlock(lock, CLOCK_THREAD_CPUTIME_ID, &past));
  add(calls.clockwrlock(lock, CLOCK_THREAD_CPUTIME_ID, &past));
}

TEST_CASE("reader-writer locks: free, held by readers and writers, by others and by this thread",
          "[locks][semantics][law]") {
  constexpr int kPreferences[] = {PTHREAD_RWLOCK_PREFER_READER_NP, PTHREAD_RWLOCK_PREFER_WRITER_NP,
                                  PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP};
  for (const int preference : kPreferences) {
    for (const int shared : {PTHREAD_PROCESS_PRIVATE, PTHREAD_PROCESS_SHARED}) {
      INFO("preference " << preference << " shared " << shared);
      Compare([&](const Calls& calls) {
        Results results;
        pthread_rwlockattr_t attributes;
        pthread_rwlockattr_init(&attributes);
        pthread_rwlockattr_setkind_np(&attributes, preference);
        pthread_rwlockattr_setpshared(&attributes, shared);
        pthread_rwlock_t lock;
        REQUIRE(pthread_rwlock_init(&lock, &attributes) == 0);
        TryTimes(calls, &lock, results);
        for (const bool writes : {true, false}) {
          results.push_back(writes ? calls.wrlock(&lock) : calls.rdlock(&lock));
          OnOtherThread([&] { TryTimes(calls, &lock, results); });
          TryTimes(calls, &lock, results);
          if (writes) results.push_back(calls.wrlock(&lock));  // EDEADLK
          if (writes) results.push_back(calls.rdlock(&lock));  // EDEADLK
          results.push_back(calls.rwlock_unlock(&lock));
        }
        results.push_back(calls.rdlock(&lock));
        const unsigned readers = lock.__data.__readers;
        lock.__data.__readers = UINT_MAX & ~7U;  // as many as there can be
        results.push_back(calls.rdlock(&lock));  // EAGAIN
        lock.__data.__readers = readers;
        results.push_back(calls.rwlock_unlock(&lock));
        return results;
      });
    }
  }
}

TEST_CASE("conditions: timeouts, errors, and the mutex afterwards", "[locks][semantics][law]") {
  for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK}) {
    INFO("type " << type);
    Compare([&](const Calls& calls) {
      Results results;
      Mutex mutex({.type = type});
      pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
      results.push_back(calls.cond_signal(&condition));
      results.push_back(calls.cond_broadcast(&condition));
      const timespec past = In(CLOCK_REALTIME, -1000), soon = In(CLOCK_MONOTONIC, 2);
      if (type == PTHREAD_MUTEX_ERRORCHECK) {
        results.push_back(calls.cond_wait(&condition, mutex.get()));  // EPERM: it is not locked
        results.push_back(calls.cond_timedwait(&condition, mutex.get(), &past));
      }
      results.push_back(calls.mutex_lock(mutex.get()));
      results.push_back(calls.cond_timedwait(&condition, mutex.get(), &past));
      results.push_back(calls.cond_timedwait(&condition, mutex.get(), &kInvalid));
      results.push_back(calls.cond_clockwait(&condition, mutex.get(), CLOCK_MONOTONIC, &soon));
      results.push_back(calls.cond_clockwait(&condition, mutex.get(), CLOCK_THREAD_CPUTIME_ID, &past));
      OnOtherThread([&] { results.push_back(pthread_mutex_trylock(mutex.get())); });  // EBUSY: it was locked again
      bool ready = false;
      std::thread other([&] {
        calls.mutex_lock(mutex.get());
        ready = true;
        calls.cond_signal(&condition);
        calls.mutex_unlock(mutex.get());
      });
      int error = 0;
      while (!ready && error == 0) error = calls.cond_wait(&condition, mutex.get());
      results.push_back(error);
      results.push_back(calls.mutex_unlock(mutex.get()));
      other.join();
      results.push_back(pthread_cond_destroy(&condition));
      return results;
    });
  }
}

// The result, and errno if it failed. errno must stay as it was if it did not.
void AddWithErrno(Results& results, const std::function<int()>& call) {
  constexpr int kUntouched = 12345;
  errno = kUntouched;
  results.push_back(call());
  results.push_back(errno);
}

TEST_CASE("semaphores: available, timeouts, errors, errno", "[locks][semantics][law]") {
  for (const int shared : {0, 1}) {
    Compare([&](const Calls& calls) {
      Results results;
      sem_t semaphore;
      REQUIRE(sem_init(&semaphore, shared, 1) == 0);
      const timespec past = In(CLOCK_REALTIME, -1000), soon = In(CLOCK_MONOTONIC, 2);
      const auto each = [&] {
        for (const timespec& time : {past, kInvalid}) {
          AddWithErrno(results, [&] { return calls.semaphore_timedwait(&semaphore, &time); });
          if (results[results.size() - 2] == 0) results.push_back(calls.semaphore_post(&semaphore));
          AddWithErrno(results, [&] { return calls.semaphore_clockwait(&semaphore, CLOCK_REALTIME, &time); });
          if (results[results.size() - 2] == 0) results.push_back(calls.semaphore_post(&semaphore));
        }
        AddWithErrno(results, [&] { return calls.semaphore_clockwait(&semaphore, CLOCK_MONOTONIC, &soon); });
        if (results[results.size() - 2] == 0) results.push_back(calls.semaphore_post(&semaphore));
        AddWithErrno(results, [&] { return calls.semaphore_clockwait(&semaphore, CLOCK_THREAD_CPUTIME_ID, &past); });
      };
      each();  // it is available
      AddWithErrno(results, [&] { return calls.semaphore_wait(&semaphore); });
      each();  // it is not
      std::thread poster([&] { calls.semaphore_post(&semaphore); });
      AddWithErrno(results, [&] { return calls.semaphore_wait(&semaphore); });
      poster.join();
      sem_t full;
      REQUIRE(sem_init(&full, shared, SEM_VALUE_MAX) == 0);
      AddWithErrno(results, [&] { return calls.semaphore_post(&full); });  // EOVERFLOW
      return results;
    });
  }
}

TEST_CASE("static initialisers", "[locks][law][semantics]") {
  Compare([](const Calls& calls) {
    pthread_mutex_t normal = PTHREAD_MUTEX_INITIALIZER, recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP,
                    checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP, adaptive = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER, writers = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    Results results;
    for (pthread_mutex_t* const mutex : {&normal, &recursive, &checked, &adaptive}) {
      results.push_back(calls.mutex_lock(mutex));
      results.push_back(calls.mutex_unlock(mutex));
    }
    for (pthread_rwlock_t* const each : {&lock, &writers}) {
      results.push_back(calls.wrlock(each));
      results.push_back(calls.rwlock_unlock(each));
    }
    return results;
  });
}

}  // namespace
}  // namespace perfkit::sys::locks
