// A program without perfkit, for the preload library: its threads take turns with locks of each kind, and one waits for
// a condition and for a reader-writer lock until it sleeps. Prints what it has counted, which must not depend on what is
// preloaded.
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

std::mutex contend_mutex;

namespace {

// Locked before main.
struct Early {
  Early() {
    const std::lock_guard lock(contend_mutex);
    pthread_mutex_lock(&recursive);
    pthread_mutex_lock(&recursive);
    pthread_mutex_unlock(&recursive);
    pthread_mutex_unlock(&recursive);
  }
  pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
} early;

void Pause() {
  const timespec time{0, 1'000'000};
  nanosleep(&time, nullptr);
}

// Returns when the kernel says that the thread sleeps.
void AwaitSleep(const std::atomic<pid_t>& tid) {
  std::string state;
  while (state != "S") {
    Pause();
    std::ifstream stat("/proc/self/task/" + std::to_string(tid) + "/stat");
    std::string word;
    stat >> word >> word >> state;
  }
}

// One thread waits long for a condition, then for a reader-writer lock. How threads that take turns wait is chance.
void WaitForEach() {
  std::mutex mutex;
  std::shared_mutex shared;
  std::condition_variable condition;
  std::atomic<pid_t> waits_for_condition = 0, waits_for_shared = 0;
  bool go = false;
  std::unique_lock shared_lock(shared);
  std::thread waiter([&] {
    std::unique_lock lock(mutex);
    waits_for_condition = gettid();
    condition.wait(lock, [&] { return go; });
    waits_for_shared = gettid();
    const std::unique_lock also(shared);
  });
  const auto release_later = [](const std::atomic<pid_t>& tid, const auto& release) {
    while (tid == 0) Pause();
    AwaitSleep(tid);
    for (int i = 0; i < 20; ++i) Pause();
    release();
  };
  release_later(waits_for_condition, [&] {
    const std::lock_guard lock(mutex);
    go = true;
    condition.notify_all();
  });
  release_later(waits_for_shared, [&] { shared_lock.unlock(); });
  waiter.join();
}

}  // namespace

int main() {
  WaitForEach();
  constexpr int kThreads = 4, kTimes = 20;
  std::shared_mutex shared;
  std::condition_variable condition;
  sem_t semaphore;
  sem_init(&semaphore, 0, 1);
  int counts[3] = {}, turn = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int time = 0; time < kTimes; ++time) {
        {
          std::unique_lock lock(contend_mutex);
          condition.wait(lock, [&] { return turn % kThreads == i; });
          ++turn, ++counts[0];
          Pause();
          condition.notify_all();
        }
        {
          const std::unique_lock lock(shared);
          ++counts[1];
          Pause();
        }
        while (sem_wait(&semaphore) != 0) {
        }
        ++counts[2];
        sem_post(&semaphore);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("%d %d %d %d\n", turn, counts[0], counts[1], counts[2]);
  return 7;
}
