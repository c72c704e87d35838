// Cancellation, signals and forks in the middle of calls: as without the component.
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "src/sys/locks/recorder.h"
#include "tests/locks/calls.h"
#include "tests/locks/reader.h"

namespace perfkit::sys::locks {
namespace {

// A thread that a test cancels.
struct Victim {
  explicit Victim(const Calls& with) : calls(with) {}

  Calls calls;
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  sem_t semaphore{};
  std::atomic<uint32_t> tid{0};
  int owner_in_cleanup = -1;

  void* Run(void* (*run)(void*), bool cancels_first, const void* lock, size_t size) {
    pthread_t thread;
    REQUIRE(pthread_create(&thread, nullptr, run, this) == 0);
    while (tid == 0) std::this_thread::yield();
    if (!cancels_first) AwaitBlocked(tid, lock, size);
    REQUIRE(pthread_cancel(thread) == 0);
    if (cancels_first) go = true;
    void* result = nullptr;
    REQUIRE(pthread_join(thread, &result) == 0);
    return result;
  }
  std::atomic<bool> go{false};
};

TEST_CASE("a wait for a semaphore is a cancellation point, also if it need not wait", "[locks][semantics][law]") {
  for (const Calls& calls : {Own(), Interposed()}) {
    for (const bool available : {true, false}) {
      Victim victim(calls);
      sem_init(&victim.semaphore, 0, available ? 1 : 0);
      const auto run = [](void* argument) -> void* {
        auto& mine = *static_cast<Victim*>(argument);
        int before = 0;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
        mine.tid = ThisThread();
        while (!mine.go) std::this_thread::yield();
        pthread_setcancelstate(before, nullptr);
        mine.calls.semaphore_wait(&mine.semaphore);
        return nullptr;
      };
      CHECK(victim.Run(run, true, nullptr, 0) == PTHREAD_CANCELED);
      int value = -1;
      CHECK(sem_getvalue(&victim.semaphore, &value) == 0);
      CHECK(value == (available ? 1 : 0));
    }
  }
}

TEST_CASE("a thread that is cancelled in a wait for a condition has the mutex in its cleanup",
          "[locks][semantics][law]") {
  const bool records = GENERATE(false, true);
  std::optional<Reader> reader;
  if (records) reader.emplace();
  for (const Calls& calls : {Own(), Interposed()}) {
    Victim victim(calls);
    const auto run = [](void* argument) -> void* {
      auto& mine = *static_cast<Victim*>(argument);
      mine.calls.mutex_lock(&mine.mutex);
      mine.tid = ThisThread();
      const auto clean_up = [](void* of) {
        auto& its = *static_cast<Victim*>(of);
        its.owner_in_cleanup = its.mutex.__data.__owner;
        its.calls.mutex_unlock(&its.mutex);
      };
      pthread_cleanup_push(clean_up, argument);
      for (;;) mine.calls.cond_wait(&mine.condition, &mine.mutex);
      pthread_cleanup_pop(0);
      return nullptr;
    };
    CHECK(victim.Run(run, false, &victim.condition, sizeof victim.condition) == PTHREAD_CANCELED);
    CHECK(static_cast<uint32_t>(victim.owner_in_cleanup) == victim.tid);
    CHECK(!IsAwaited(&victim.condition));
    CHECK(pthread_mutex_trylock(&victim.mutex) == 0);
  }
}

// POSIX does not promise it, but the C library's own calls permit it.
TEST_CASE("a thread may end in a handler that interrupts a timed wait for a mutex", "[locks][semantics][law]") {
  const bool records = GENERATE(false, true);
  std::optional<Reader> reader;
  if (records) reader.emplace();
  struct sigaction action {}, before {};
  action.sa_handler = [](int) { pthread_exit(nullptr); };
  sigaction(SIGUSR2, &action, &before);
  for (const Calls& calls : {Own(), Interposed()}) {
    Victim victim(calls);
    calls.mutex_lock(&victim.mutex);
    pthread_t thread;
    const auto run = [](void* argument) -> void* {
      auto& mine = *static_cast<Victim*>(argument);
      timespec until{};
      clock_gettime(CLOCK_REALTIME, &until);
      until.tv_sec += 1000;
      mine.tid = ThisThread();
      mine.calls.mutex_timedlock(&mine.mutex, &until);
      return &mine;
    };
    REQUIRE(pthread_create(&thread, nullptr, run, &victim) == 0);
    while (victim.tid == 0) std::this_thread::yield();
    AwaitBlocked(victim.tid, &victim.mutex, sizeof victim.mutex);
    REQUIRE(pthread_kill(thread, SIGUSR2) == 0);
    void* result = &victim;
    REQUIRE(pthread_join(thread, &result) == 0);
    CHECK(result == nullptr);
    calls.mutex_unlock(&victim.mutex);
  }
  sigaction(SIGUSR2, &before, nullptr);
}

TEST_CASE("a wait for a mutex is no cancellation point", "[locks][semantics][law]") {
  const bool records = GENERATE(false, true);
  std::optional<Reader> reader;
  if (records) reader.emplace();
  for (const Calls& calls : {Own(), Interposed()}) {
    Victim victim(calls);
    calls.mutex_lock(&victim.mutex);
    pthread_t thread;
    const auto run = [](void* argument) -> void* {
      auto& mine = *static_cast<Victim*>(argument);
      mine.tid = ThisThread();
      const int error = mine.calls.mutex_lock(&mine.mutex);
      mine.calls.mutex_unlock(&mine.mutex);
      return error == 0 ? &mine : nullptr;
    };
    REQUIRE(pthread_create(&thread, nullptr, run, &victim) == 0);
    while (victim.tid == 0) std::this_thread::yield();
    AwaitBlocked(victim.tid, &victim.mutex, sizeof victim.mutex);
    REQUIRE(pthread_cancel(thread) == 0);
    usleep(1000);
    calls.mutex_unlock(&victim.mutex);
    void* result = nullptr;
    REQUIRE(pthread_join(thread, &result) == 0);
    CHECK(result == &victim);
  }
}

sem_t g_posted;
std::atomic<int> g_handled{0};

TEST_CASE("a handler that posts a semaphore interrupts a wait for another one", "[locks][semantics][law]") {
  const bool records = GENERATE(false, true);
  std::optional<Reader> reader;
  if (records) reader.emplace();
  for (const Calls& calls : {Own(), Interposed()}) {
    sem_init(&g_posted, 0, 0);
    sem_t waited;
    sem_init(&waited, 0, 0);
    struct sigaction action {}, before {};
    action.sa_handler = [](int) {
      ++g_handled;
      sem_post(&g_posted);
    };
    REQUIRE(sigaction(SIGUSR1, &action, &before) == 0);
    int result = 0, error = 0;
    std::atomic<uint32_t> tid{0};
    std::thread thread([&] {
      tid = ThisThread();
      result = calls.semaphore_wait(&waited);
      error = errno;
    });
    while (tid == 0) std::this_thread::yield();
    AwaitBlocked(tid, &waited, sizeof waited);
    const int handled = g_handled;
    pthread_kill(thread.native_handle(), SIGUSR1);
    CHECK(calls.semaphore_wait(&g_posted) == 0);
    thread.join();
    CHECK(g_handled == handled + 1);
    CHECK(result == -1);
    CHECK(error == EINTR);
    sigaction(SIGUSR1, &before, nullptr);
  }
}

// The child has a copy of everything, and one thread.
TEST_CASE("a child that is forked while others hold and wait uses locks, and records anew", "[locks][law]") {
  Reader reader;
  std::mutex contended, held;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!stop) {
        const std::lock_guard lock(contended);
        std::this_thread::yield();
      }
    });
  }
  held.lock();
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const LockWaitSource& source = *LockWaits();
      source.on_forked_child();
      LockWait wait;
      if (source.take(wait)) _exit(1);
      if (IsRecording() || !source.start(0)) _exit(2);
      held.unlock();  // by the thread that has locked it
      held.lock();
      sem_t semaphore;
      sem_init(&semaphore, 0, 0);
      const timespec past = In(CLOCK_REALTIME, -1000);
      if (sem_timedwait(&semaphore, &past) == 0) _exit(3);
      if (!source.take(wait) || wait.lock != reinterpret_cast<uintptr_t>(&semaphore)) _exit(4);
      if (wait.tid != static_cast<uint32_t>(getpid())) _exit(5);
      _exit(source.take(wait) ? 6 : 0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  held.unlock();
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_CASE("threads that come and go leave nothing but their records", "[locks][law]") {
  constexpr int kThreads = 200;
  Reader reader;
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  const timespec past = In(CLOCK_REALTIME, -1000);
  std::vector<uint32_t> tids;
  for (int i = 0; i < kThreads; ++i) {
    std::thread([&] {
      tids.push_back(ThisThread());
      sem_timedwait(&semaphore, &past);
    }).join();
  }
  const std::vector<LockWait> waits = reader.Of(&semaphore);
  REQUIRE(waits.size() == tids.size());
  for (size_t i = 0; i < waits.size(); ++i) CHECK(waits[i].tid == tids[i]);
  CHECK(!IsAwaited(&semaphore));
}

}  // namespace
}  // namespace perfkit::sys::locks
