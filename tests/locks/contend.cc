// A program without perfkit, for the preload library: its threads take turns with locks of each kind. Prints what it has
// counted, which must not depend on what is preloaded.
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <shared_mutex>
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

}  // namespace

int main() {
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
