// A thread of the library: named, and out of the way of the program's signals.
#pragma once

#include <pthread.h>

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

 private:
  static void* Run(void* self);

  const char* name_ = "";
  std::function<void()> work_;
  std::optional<pthread_t> thread_;
};

}  // namespace perfkit::sys
