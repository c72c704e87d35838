// A thread of the library's own: named, out of the way of the program's signals.
#pragma once

#include <pthread.h>

#include <functional>
#include <optional>

#include "absl/status/status.h"

namespace perfkit::sys {

// Not thread-safe. Join before it is destroyed.
class WorkerThread {
 public:
  WorkerThread() = default;
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  // Runs `work` on a new thread. `name`: at most 15 bytes. It gets no signal but those that its own code raises, and
  // SIGTRAP. ResourceExhausted if there can be no more threads.
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
