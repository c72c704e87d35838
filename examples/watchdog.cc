// A watchdog: prints what each thread waits for when the program makes no progress.
#include <perfkit/blocked_threads.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <thread>

int main() {
  std::mutex mutex;
  mutex.lock();  // and forgotten
  std::atomic<uint64_t> progress{0};
  std::thread worker([&] {
    const std::lock_guard<std::mutex> lock(mutex);
    ++progress;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const auto threads = perfkit::BlockedThreads();
  if (progress == 0) printf("%s", threads.ok() ? perfkit::FormatBlockedThreads(*threads).c_str() : "no /proc\n");
  mutex.unlock();
  worker.join();
}
