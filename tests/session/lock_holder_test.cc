// Who holds a lock: locks of each kind with a known holder, words that only look like locks, and locks in many hands.
#include "src/session/lock_holder.h"

#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "perfkit/blocked_threads.h"
#include "src/session/blocked_look.h"
#include "tests/session/numbered_thread.h"
#include "tests/support/skip.h"
#include "tests/support/work.h"

namespace perfkit::session {
namespace {

// Takes a lock on a thread that then sleeps, has another one wait for it, and returns who is said to hold it, as
// "holder", "none" or another number. `lock` and `release` are called by the holder, `wait` by the one that waits.
struct PlantedLock {
  std::function<void()> lock, release, wait;
  const void* address = nullptr;
  size_t bytes = 0;

  std::string HeldBy() const {
    std::atomic<bool> is_held{false}, stop{false};
    NumberedThread holder([&] {
      lock();
      is_held = true;
      is_held.notify_all();
      while (!stop) poll(nullptr, 0, 1);
      release();
    });
    is_held.wait(false);
    std::string said;
    {
      NumberedThread waiter(wait);
      const ThreadStatus look = AwaitFutex(waiter.tid(), address, bytes);
      said = look.holder == holder.tid() ? "holder" : look.holder == 0 ? "none" : std::to_string(look.holder);
      CHECK_FALSE(look.holder_gone);
      CHECK_FALSE(look.deadlocked);
      stop = true;
    }
    return said;
  }
};

std::string Known() { return kLocksTell ? "holder" : "none"; }

class MutexOfKind {
 public:
  MutexOfKind(int type, int protocol, int robust, int shared) {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, type);
    pthread_mutexattr_setprotocol(&attributes, protocol);
    pthread_mutexattr_setrobust(&attributes, robust);
    pthread_mutexattr_setpshared(&attributes, shared);
    usable_ = pthread_mutex_init(&mutex_, &attributes) == 0;
    pthread_mutexattr_destroy(&attributes);
    usable_ = usable_ && pthread_mutex_lock(&mutex_) == 0;  // some kernels have no priority inheritance
    if (usable_) pthread_mutex_unlock(&mutex_);
  }
  ~MutexOfKind() { pthread_mutex_destroy(&mutex_); }

  std::string HeldBy(bool timed = false) {
    if (!usable_) return "not usable";
    const PlantedLock planted{.lock = [&] { pthread_mutex_lock(&mutex_); },
                              .release = [&] { pthread_mutex_unlock(&mutex_); },
                              .wait =
                                  [&, timed] {
                                    timespec until{};
                                    clock_gettime(CLOCK_REALTIME, &until);
                                    until.tv_sec += 1000;
                                    timed ? pthread_mutex_timedlock(&mutex_, &until) : pthread_mutex_lock(&mutex_);
                                    pthread_mutex_unlock(&mutex_);
                                  },
                              .address = &mutex_,
                              .bytes = sizeof mutex_};
    return planted.HeldBy();
  }

 private:
  pthread_mutex_t mutex_;
  bool usable_ = false;
};

TEST_CASE("the holder of a mutex of each kind is named", "[lock_holder][law]") {
  constexpr int kPlain = PTHREAD_PRIO_NONE, kWeak = PTHREAD_MUTEX_STALLED, kOwn = PTHREAD_PROCESS_PRIVATE;
  for (const int type : {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK}) {
    INFO(type);
    CHECK(MutexOfKind(type, kPlain, kWeak, kOwn).HeldBy() == Known());
    CHECK(MutexOfKind(type, kPlain, kWeak, kOwn).HeldBy(true) == Known());
    const std::string inherits = MutexOfKind(type, PTHREAD_PRIO_INHERIT, kWeak, kOwn).HeldBy();
    if (inherits != "not usable") CHECK(inherits == "holder");
  }
  // The number may be that of a thread of another process.
  CHECK(MutexOfKind(PTHREAD_MUTEX_NORMAL, kPlain, kWeak, PTHREAD_PROCESS_SHARED).HeldBy() == "none");
  CHECK(MutexOfKind(PTHREAD_MUTEX_NORMAL, kPlain, PTHREAD_MUTEX_ROBUST, kOwn).HeldBy() == "none");
}

TEST_CASE("the writer that has a reader-writer lock is named, readers are not", "[lock_holder][law]") {
  pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
  const std::function<void()> release = [&] { pthread_rwlock_unlock(&lock); };
  const std::function<void()> read = [&] { pthread_rwlock_rdlock(&lock); };
  const std::function<void()> write = [&] { pthread_rwlock_wrlock(&lock); };
  const auto held_by = [&](const std::function<void()>& take, const std::function<void()>& wait) {
    const PlantedLock planted{
        .lock = take, .release = release, .wait = [&] { wait(), release(); }, .address = &lock, .bytes = sizeof lock};
    return planted.HeldBy();
  };
  // Without its symbols a C library does not prove that it is such a lock.
  const std::string by_reader = held_by(write, read), by_writer = held_by(write, write);
  CHECK((by_reader == Known() || by_reader == "none"));
  CHECK((by_writer == Known() || by_writer == "none"));
  CHECK(held_by(read, write) == "none");
}

TEST_CASE("who locks a mutex anew after a condition learns of its holder", "[lock_holder]") {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  bool is_there = false, go_on = false;
  NumberedThread waiter([&] {
    pthread_mutex_lock(&mutex);
    is_there = true;
    while (!go_on) pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
  });
  for (bool waits = false; !waits;) {
    pthread_mutex_lock(&mutex);
    waits = is_there;
    pthread_mutex_unlock(&mutex);
  }
  CHECK(AwaitFutex(waiter.tid(), &condition, sizeof condition).holder == 0);
  pthread_mutex_lock(&mutex);
  go_on = true;
  pthread_cond_signal(&condition);
  const ThreadStatus look = AwaitFutex(waiter.tid(), &mutex, sizeof mutex);
  // A C library without the symbols of its internal functions names the condition's function only.
  CHECK((look.holder == Tid() || look.holder == 0));
  pthread_mutex_unlock(&mutex);
}

// The memory of a mutex that a living thread has, as far as words can say it.
struct alignas(8) LikeMutex {
  std::atomic<int> word{2};
  unsigned count = 0;
  int owner = 0;
  unsigned users = 1;
  int kind = 0;
  char rest[64] = {};
};

void OwnFutex(LikeMutex& like) {
  while (like.word == 2) syscall(SYS_futex, &like.word, FUTEX_WAIT_PRIVATE, 2, nullptr, nullptr, 0);
}

#if defined(__x86_64__)
void InlineFutex(LikeMutex& like) {
  while (like.word == 2) {
    long result = SYS_futex;
    register long timeout asm("r10") = 0;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(&like.word), "S"(FUTEX_WAIT_PRIVATE), "d"(2), "r"(timeout)
                 : "rcx", "r11", "memory");
  }
}
#endif

TEST_CASE("words that only look like those of a lock are not taken for one", "[lock_holder]") {
  std::vector<std::function<void(LikeMutex&)>> waits = {OwnFutex, [](LikeMutex& like) { like.word.wait(2); }};
#if defined(__x86_64__)
  waits.push_back(InlineFutex);
#endif
  for (size_t i = 0; i < waits.size(); ++i) {
    INFO(i);
    LikeMutex like;
    like.owner = static_cast<int>(Tid());
    NumberedThread waiter([&] { waits[i](like); });
    const ThreadStatus look = AwaitFutex(waiter.tid(), &like, sizeof like);
    CHECK(look.holder == 0);
    like.word = 0;
    like.word.notify_all();
    syscall(SYS_futex, &like.word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
}

TEST_CASE("a semaphore has no holder", "[lock_holder]") {
  sem_t semaphore;
  REQUIRE(sem_init(&semaphore, 0, 0) == 0);
  {
    NumberedThread waiter([&] { sem_wait(&semaphore); });
    CHECK(AwaitFutex(waiter.tid(), &semaphore, sizeof semaphore).holder == 0);
    sem_post(&semaphore);
  }
  sem_destroy(&semaphore);
}

TEST_CASE("a holder that has ended is gone", "[lock_holder]") {
  if (testing::kSanitized) SKIP_TEST("a sanitizer tells of a mutex that another thread releases");
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  NumberedThread holder([&] { pthread_mutex_lock(&mutex); });
  const uint32_t ended = holder.tid();
  holder.Join();
  NumberedThread waiter([&] {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  });
  ThreadStatus look = AwaitFutex(waiter.tid(), &mutex, sizeof mutex);
  // Its entry in /proc may stay for a moment.
  while (look.holder != 0 && !look.holder_gone) look = AwaitFutex(waiter.tid(), &mutex, sizeof mutex);
  if (kLocksTell) {
    CHECK(look.holder == ended);
    CHECK(look.holder_gone);
    CHECK(FormatBlockedThreads(std::span(&look, 1)).find(std::to_string(ended) + ", which is gone") !=
          std::string::npos);
  }
  pthread_mutex_unlock(&mutex);
}

// A lock that goes from hand to hand. `held` is odd while a thread has it, by whom is in `holder`.
struct HotLock {
  std::mutex mutex;
  std::atomic<uint64_t> held{0};
  std::atomic<uint32_t> holder{0};
  std::atomic<bool> stop{false};

  void HandAround(unsigned seed) {
    std::mt19937 random(seed);
    while (!stop) {
      {
        const std::lock_guard<std::mutex> lock(mutex);
        holder = Tid();
        ++held;
        const timespec time{0, static_cast<long>(1000 * (100 + random() % 3000))};
        if (random() % 4 != 0) nanosleep(&time, nullptr);
        ++held;
      }
      if (random() % 2 != 0) sched_yield();
    }
  }
};

TEST_CASE("a lock in many hands: who is named has it at the time of the look", "[lock_holder][law]") {
  constexpr uint64_t kWanted = 300, kMaxLooks = 300'000;
  HotLock hot;
  uint64_t right = 0, wrong = 0, undecided = 0, looks = 0;
  std::array<StackFrame, 16> frames;
  {
    std::vector<std::unique_ptr<NumberedThread>> threads;
    for (unsigned i = 0; i < 4; ++i) {
      threads.push_back(std::make_unique<NumberedThread>([&hot, i] { hot.HandAround(i); }));
    }
    for (; right + wrong < kWanted && looks < kMaxLooks; ++looks) {
      const uint64_t before = hot.held;
      const uint32_t holder = hot.holder;
      const auto look =
          LookAtBlocked(static_cast<uint32_t>(getpid()), proc::ThreadFiles(threads[looks % 4]->tid()), nullptr, frames);
      if (!look || !look->holder || look->call.arguments[0] != reinterpret_cast<uint64_t>(&hot.mutex)) continue;
      if (before % 2 == 0 || hot.held != before) {
        ++undecided;
      } else {
        ++(*look->holder == holder ? right : wrong);
      }
    }
    hot.stop = true;
  }
  CAPTURE(right, wrong, undecided, looks);
  CHECK(wrong == 0);
  if (kLocksTell) CHECK(right + undecided > 0);
}

TEST_CASE("the calls of a stack prove a lock or refute it", "[lock_holder]") {
  constexpr uint64_t kWait = FUTEX_WAIT_PRIVATE, kTimed = FUTEX_WAIT_BITSET_PRIVATE, kPi = FUTEX_LOCK_PI_PRIVATE;
  const auto proves = [](uint64_t operation, uint64_t value, std::vector<NamedCall> calls) {
    const std::array<uint64_t, 6> arguments{0x1000, operation, value};
    return ProvesLock(sys::FutexLockOf(SYS_futex, arguments), calls);
  };
  constexpr std::string_view kLibc = "/lib/x86_64-linux-gnu/libc.so.6", kOld = "/lib/libpthread-2.31.so";
  CHECK(proves(kWait, 2, {{"__lll_lock_wait", kOld}}));
  CHECK(proves(kWait, 2, {{"futex_wait", kLibc}, {"__GI___lll_lock_wait", kLibc}}));
  CHECK(proves(kWait, 2, {{"", kLibc}, {"pthread_mutex_lock", kLibc}}));
  CHECK(proves(kWait, 2, {{"", kLibc}, {"work", "/bin/app"}}));
  CHECK(proves(kWait, 2, {{"", kLibc}, {"pthread_cond_wait", kLibc}}));
  CHECK(proves(kTimed, 2, {{"__futex_abstimed_wait_common64", kLibc}, {"pthread_mutex_clocklock", kLibc}}));
  CHECK(proves(kTimed, 3, {{"pthread_rwlock_rdlock", kLibc}}));
  CHECK(proves(kPi, 0, {}));
  CHECK_FALSE(proves(kWait, 2, {}));
  CHECK_FALSE(proves(kWait, 2, {{"syscall", kLibc}, {"pthread_mutex_lock", "/bin/app"}}));
  CHECK_FALSE(proves(kWait, 2, {{"pthread_mutex_lock", "/bin/app"}}));
  CHECK_FALSE(proves(kWait, 2, {{"__lll_lock_wait_private", kLibc}, {"malloc", kLibc}}));
  CHECK_FALSE(proves(kTimed, 2, {{"pthread_cond_wait", kLibc}}));
  CHECK_FALSE(proves(kTimed, 3, {{"", kLibc}}));
  CHECK_FALSE(proves(kTimed, 3, {{"pthread_mutex_lock", kLibc}}));
  CHECK_FALSE(proves(FUTEX_WAIT, 2, {{"pthread_mutex_lock", kLibc}}));
  CHECK_FALSE(proves(kWait, 2, {{"", "/lib/libpthreadpool.so"}}));
  CHECK_FALSE(proves(kWait, 2, {{"", "/lib/libc.sound"}}));
  CHECK_FALSE(proves(kWait, 7, {{"pthread_mutex_lock", kLibc}}));
}

}  // namespace
}  // namespace perfkit::session
