// A watchdog: prints what each thread waits for when the program makes no progress.
#include <perfkit/blocked_threads.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>
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
  const std::string text = threads.ok() ? perfkit::FormatBlockedThreads(*threads) : threads.status().ToString() + "\n";
  if (progress == 0) fputs(text.c_str(), stdout);
  mutex.unlock();
  worker.join();
}
