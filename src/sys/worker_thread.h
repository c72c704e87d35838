// A thread of the library: named, and out of the way of the program's signals.
#pragma once

#include <pthread.h>

#include <atomic>
#include <functional>
#include <optional>

#include "absl/status/status.h"

namespace perfkit::sys {

// Not thread-safe. Must be joined before it is destroyed.
class WorkerThread {
 public:
  WorkerThread() = default;
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Runs `work` on a new thread. `name` has at most 15 bytes. The thread blocks all signals but SIGTRAP and those that
  // its own code raises. Errors: ResourceExhausted if no more threads can be created.
  absl::Status Start(const char* name, std::function<void()> work);
  // Waits until `work` has returned.
  void Join();

  // Returns how many of the library's threads run: at most as many as the process has. In a forked child, of which none
  // is a copy, this is the parent's number. Thread-safe.
  static int running() { return running_.load(std::memory_order_relaxed); }

 private:
  static inline std::atomic<int> running_{0};

  static void* Run(void* self);

  const char* name_ = "";
  std::function<void()> work_;
  std::optional<pthread_t> thread_;
};

}  // namespace perfkit::sys
