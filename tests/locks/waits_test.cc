// What is recorded of waits for locks, against what the test knows.
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "src/sys/locks/recorder.h"
#include "src/sys/locks/wait_ring.h"
#include "tests/locks/calls.h"
#include "tests/locks/reader.h"

namespace perfkit::sys::locks {
namespace {

// One wait, of which all is known: this thread holds the lock until another one sleeps in it.
struct PlantedWait {
  uint32_t waiter = 0, holder = ThisThread();
  uint64_t before_ns = 0, released_ns = 0, after_ns = 0;
};

PlantedWait Plant(const void* lock, size_t size, const std::function<void()>& wait,
                  const std::function<void()>& release) {
  PlantedWait planted;
  std::atomic<uint32_t> waiter{0};
  std::thread thread([&] {
    planted.before_ns = NowNs();
    waiter = ThisThread();
    wait();
    planted.after_ns = NowNs();
  });
  while (waiter == 0) std::this_thread::yield();
  planted.waiter = waiter;
  AwaitBlocked(waiter, lock, size);
  planted.released_ns = NowNs();
  release();
  thread.join();
  return planted;
}

void CheckWait(const LockWait& wait, const PlantedWait& planted, LockKind kind, bool has_holder) {
  CHECK(wait.kind == kind);
  CHECK(wait.acquired);
  CHECK(wait.tid == planted.waiter);
  CHECK(wait.holder == (has_holder ? planted.holder : 0));
  CHECK(wait.releaser == planted.holder);
  CHECK(wait.has_one_holder == has_holder);
  CHECK(planted.before_ns <= wait.from_ns);
  CHECK(wait.from_ns <= planted.released_ns);
  CHECK(planted.released_ns <= wait.released_ns);
  CHECK(wait.released_ns <= wait.to_ns);
  CHECK(wait.to_ns <= planted.after_ns);
}

template <class Lock>
void CheckPlanted(Lock& lock, LockKind kind, bool has_holder, const std::function<void()>& wait,
                  const std::function<void()>& release) {
  Reader reader;
  const PlantedWait planted = Plant(&lock, sizeof lock, wait, release);
  const std::vector<LockWait> waits = reader.Of(&lock);
  REQUIRE(waits.size() == 1);
  CheckWait(waits[0], planted, kind, has_holder);
  CHECK(!IsAwaited(&lock));
}

TEST_CASE("a wait for a mutex has its thread, its holder, and who released it and when", "[locks][law]") {
  SECTION("mutex") {
    std::mutex mutex;
    mutex.lock();
    CheckPlanted(
        mutex, LockKind::kMutex, true, [&] { mutex.lock(), mutex.unlock(); }, [&] { mutex.unlock(); });
  }
  SECTION("timed mutex") {
    std::timed_mutex mutex;
    mutex.lock();
    const auto wait = [&] {
      CHECK(mutex.try_lock_for(std::chrono::hours(1)));
      mutex.unlock();
    };
    CheckPlanted(mutex, LockKind::kMutex, true, wait, [&] { mutex.unlock(); });
  }
  SECTION("recursive mutex") {
    std::recursive_mutex mutex;
    mutex.lock(), mutex.lock();
    const auto release = [&] { mutex.unlock(), mutex.unlock(); };
    CheckPlanted(
        mutex, LockKind::kMutex, true, [&] { mutex.lock(), mutex.unlock(); }, release);
  }
  SECTION("priority-inheriting mutex") {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT);
    pthread_mutex_t mutex;
    REQUIRE(pthread_mutex_init(&mutex, &attributes) == 0);
    pthread_mutex_lock(&mutex);
    const auto wait = [&] { pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); };
    CheckPlanted(mutex, LockKind::kMutex, true, wait, [&] { pthread_mutex_unlock(&mutex); });
  }
}

TEST_CASE("so have waits for other locks, but for holders that are not alone", "[locks][law]") {
  SECTION("reader that waits for a writer") {
    std::shared_mutex mutex;
    mutex.lock();
    const auto wait = [&] { mutex.lock_shared(), mutex.unlock_shared(); };
    CheckPlanted(mutex, LockKind::kRwlock, true, wait, [&] { mutex.unlock(); });
  }
  SECTION("writer that waits for a reader: no thread holds it alone") {
    std::shared_mutex mutex;
    mutex.lock_shared();
    const auto wait = [&] { mutex.lock(), mutex.unlock(); };
    CheckPlanted(mutex, LockKind::kRwlock, false, wait, [&] { mutex.unlock_shared(); });
  }
  SECTION("condition, in a function of libstdc++") {
    std::mutex mutex;
    std::condition_variable condition;
    bool ready = false;
    const auto wait = [&] {
      std::unique_lock lock(mutex);
      condition.wait(lock, [&] { return ready; });
    };
    const auto release = [&] {
      const std::lock_guard lock(mutex);
      ready = true;
      condition.notify_one();
    };
    CheckPlanted(condition, LockKind::kCondition, false, wait, release);
  }
  SECTION("semaphore") {
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    const auto wait = [&] { CHECK(sem_wait(&semaphore) == 0); };
    CheckPlanted(semaphore, LockKind::kSemaphore, false, wait, [&] { sem_post(&semaphore); });
  }
}

TEST_CASE("a wait for a condition has its first signal", "[locks][law]") {
  Reader reader;
  std::mutex mutex;
  std::condition_variable condition;
  bool ready = false;
  uint64_t before_ns = 0, between_ns = 0;
  Plant(
      &condition, sizeof condition,
      [&] {
        std::unique_lock<std::mutex> lock(mutex);
        condition.wait(lock, [&] { return ready; });
      },
      [&] {
        const std::lock_guard<std::mutex> lock(mutex);
        ready = true;
        before_ns = NowNs();
        condition.notify_all();
        between_ns = NowNs();
        condition.notify_all();
      });
  const std::vector<LockWait> waits = reader.Of(&condition);
  REQUIRE(!waits.empty());
  CHECK(before_ns <= waits.back().signalled_ns);
  CHECK(waits.back().signalled_ns <= between_ns);
  // The second one is noted if it came before the thread was woken.
  CHECK(waits.back().signalled_ns <= waits.back().released_ns);
}

TEST_CASE("a wait for a condition has the timeout that has ended it", "[locks][law]") {
  constexpr uint64_t kTimeoutNs = 2'000'000, kNsPerS = 1'000'000'000;
  const auto time_of = [](uint64_t ns) {
    return timespec{.tv_sec = static_cast<time_t>(ns / kNsPerS), .tv_nsec = static_cast<long>(ns % kNsPerS)};
  };
  const auto now_ns = [](clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<uint64_t>(now.tv_sec) * kNsPerS + static_cast<uint64_t>(now.tv_nsec);
  };
  Reader reader;
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t by_real, by_monotonic;
  pthread_cond_init(&by_real, nullptr);
  pthread_cond_init(&by_monotonic, &monotonic);
  pthread_mutex_lock(&mutex);
  const uint64_t end_ns = now_ns(CLOCK_MONOTONIC) + kTimeoutNs;
  const timespec end = time_of(end_ns), over{}, real_end = time_of(now_ns(CLOCK_REALTIME) + kTimeoutNs);
  CHECK(pthread_cond_timedwait(&by_monotonic, &mutex, &end) == ETIMEDOUT);
  CHECK(pthread_cond_clockwait(&by_real, &mutex, CLOCK_MONOTONIC, &over) == ETIMEDOUT);
  CHECK(pthread_cond_timedwait(&by_real, &mutex, &real_end) == ETIMEDOUT);
  pthread_mutex_unlock(&mutex);
  std::vector<LockWait> waits;
  const LockWaitSource& source = *LockWaits();
  for (LockWait wait; source.take(wait);) {
    if (wait.mutex == reinterpret_cast<uintptr_t>(&mutex)) waits.push_back(wait);
  }
  REQUIRE(waits.size() == 3);
  CHECK(waits[0].signalled_ns == std::max(end_ns, waits[0].from_ns));
  CHECK(waits[1].signalled_ns == waits[1].from_ns);
  CHECK(waits[2].from_ns <= waits[2].signalled_ns);
  CHECK(waits[2].signalled_ns <= waits[2].to_ns);
}

TEST_CASE("a mutex that a wait for a condition releases has that thread as its releaser", "[locks][law]") {
  std::mutex mutex;
  std::condition_variable condition;
  bool ready = false;
  Reader reader;
  std::unique_lock held(mutex);
  const PlantedWait planted = Plant(
      &mutex, sizeof mutex,
      [&] {
        const std::lock_guard lock(mutex);
        ready = true;
        condition.notify_one();
      },
      [&] { condition.wait(held, [&] { return ready; }); });
  const std::vector<LockWait> waits = reader.Of(&mutex);
  REQUIRE(waits.size() == 1);
  CheckWait(waits[0], planted, LockKind::kMutex, true);
}

TEST_CASE("a process-shared or robust mutex has no holder: it may be another process's thread", "[locks][law]") {
  const bool robust = GENERATE(false, true);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  if (robust) pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  if (!robust) pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_t mutex;
  REQUIRE(pthread_mutex_init(&mutex, &attributes) == 0);
  pthread_mutex_lock(&mutex);
  Reader reader;
  const auto wait = [&] { pthread_mutex_lock(&mutex), pthread_mutex_unlock(&mutex); };
  const PlantedWait planted = Plant(&mutex, sizeof mutex, wait, [&] { pthread_mutex_unlock(&mutex); });
  const std::vector<LockWait> waits = reader.Of(&mutex);
  REQUIRE(waits.size() == 1);
  CHECK(waits[0].tid == planted.waiter);
  CHECK(waits[0].holder == 0);
  CHECK(waits[0].releaser == 0);
}

TEST_CASE("what does not wait is not recorded", "[locks][law]") {
  Reader reader;
  std::mutex mutex;
  std::recursive_mutex recursive;
  std::shared_mutex shared;
  pthread_mutex_t checked = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  for (int i = 0; i < 1000; ++i) {
    mutex.lock(), mutex.unlock();
    recursive.lock(), recursive.lock(), recursive.unlock(), recursive.unlock();
    shared.lock_shared(), shared.lock_shared(), shared.unlock_shared(), shared.unlock_shared();
    shared.lock(), shared.unlock();
    pthread_mutex_lock(&checked), pthread_mutex_unlock(&checked);
    sem_post(&semaphore), sem_wait(&semaphore);
    const timespec past = In(CLOCK_REALTIME, -1000);
    sem_post(&semaphore), sem_timedwait(&semaphore, &past);
  }
  for (LockWait wait; LockWaits()->take(wait);) {
    for (const void* const lock :
         {static_cast<void*>(&mutex), static_cast<void*>(&recursive), static_cast<void*>(&shared),
          static_cast<void*>(&checked), static_cast<void*>(&semaphore)}) {
      CHECK(wait.lock != reinterpret_cast<uintptr_t>(lock));
    }
  }
  CHECK(reader.lost() == 0);
}

TEST_CASE("a wait that goes on from one recording to the next has no record", "[locks][law]") {
  std::mutex mutex;
  mutex.lock();
  std::optional<Reader> reader(std::in_place);
  // What was released while nothing was recorded is not known.
  const auto record_again = [&] {
    reader.reset();
    reader.emplace();
    mutex.unlock();
  };
  Plant(
      &mutex, sizeof mutex, [&] { mutex.lock(), mutex.unlock(); }, record_again);
  CHECK(reader->Of(&mutex).empty());
}

TEST_CASE("waits shorter than the threshold are not recorded, and longer ones all are", "[locks][law]") {
  constexpr uint64_t kThresholdNs = 20'000'000;
  Reader reader(kThresholdNs);
  std::mutex mutex;
  const bool is_long = GENERATE(false, true);
  mutex.lock();
  // It waits from when it was seen to sleep until the release, at least.
  const PlantedWait planted = Plant(
      &mutex, sizeof mutex, [&] { mutex.lock(), mutex.unlock(); },
      [&] {
        const uint64_t until_ns = NowNs() + (is_long ? 2 * kThresholdNs : 0);
        while (NowNs() < until_ns) std::this_thread::yield();
        mutex.unlock();
      });
  const std::vector<LockWait> waits = reader.Of(&mutex);
  for (const LockWait& wait : waits) CHECK(wait.to_ns - wait.from_ns >= kThresholdNs);
  if (is_long) CHECK(waits.size() == 1);
  if (planted.after_ns - planted.before_ns < kThresholdNs) CHECK(waits.empty());
}

TEST_CASE("what the buffer has no room for is counted", "[locks][law]") {
  constexpr size_t kMore = 1000;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const timespec past = In(CLOCK_REALTIME, -1000);
  Reader reader;
  for (int round = 0; round < 2; ++round) {
    const uint64_t lost_before = reader.lost();
    for (size_t i = 0; i < WaitRing::kSlots + kMore; ++i) CHECK(sem_timedwait(&semaphore, &past) == -1);
    const std::vector<LockWait> waits = reader.Of(&semaphore);
    // Other threads of this program may wait, too.
    CHECK(waits.size() <= WaitRing::kSlots);
    CHECK(waits.size() + reader.lost() - lost_before >= WaitRing::kSlots + kMore);
    for (size_t i = 1; i < waits.size(); ++i) CHECK(waits[i - 1].to_ns <= waits[i].from_ns);
  }
}

TEST_CASE("there is one reader, and it gets nothing from before", "[locks][law]") {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const timespec past = In(CLOCK_REALTIME, -1000);
  {
    Reader first;
    CHECK(!LockWaits()->start(0));
    sem_timedwait(&semaphore, &past);
  }
  sem_timedwait(&semaphore, &past);  // nothing records
  Reader second;
  CHECK(second.Of(&semaphore).empty());
  sem_timedwait(&semaphore, &past);
  CHECK(second.Of(&semaphore).size() == 1);
}

TEST_CASE("a timeout, and a signal, end a wait that was not acquired", "[locks][law]") {
  Reader reader;
  std::timed_mutex mutex;
  mutex.lock();
  std::thread([&] { CHECK(!mutex.try_lock_for(std::chrono::milliseconds(1))); }).join();
  const std::vector<LockWait> waits = reader.Of(&mutex);
  REQUIRE(waits.size() == 1);
  CHECK(!waits[0].acquired);
  CHECK(waits[0].holder == ThisThread());
  CHECK(waits[0].releaser == 0);
  mutex.unlock();
}

TEST_CASE("a thread that is cancelled in a wait leaves no record, and nothing waits any more", "[locks][law]") {
  Reader reader;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  std::atomic<uint32_t> tid{0};
  struct Shared {
    sem_t& semaphore;
    std::atomic<uint32_t>& tid;
  } shared{semaphore, tid};
  pthread_t thread;
  const auto run = [](void* argument) -> void* {
    auto& with = *static_cast<Shared*>(argument);
    with.tid = ThisThread();
    sem_wait(&with.semaphore);
    return nullptr;
  };
  REQUIRE(pthread_create(&thread, nullptr, run, &shared) == 0);
  while (tid == 0) std::this_thread::yield();
  AwaitBlocked(tid, &semaphore, sizeof semaphore);
  CHECK(IsAwaited(&semaphore));
  REQUIRE(pthread_cancel(thread) == 0);
  void* result = nullptr;
  REQUIRE(pthread_join(thread, &result) == 0);
  CHECK(result == PTHREAD_CANCELED);
  CHECK(!IsAwaited(&semaphore));
  CHECK(reader.Of(&semaphore).empty());
}

}  // namespace
}  // namespace perfkit::sys::locks
