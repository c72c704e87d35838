// The open tasks of all threads that have had a task.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "src/itt/open_tasks.h"
#include "src/sys/fork_registry.h"

namespace perfkit::itt {

// Thread-safe, also in a forked child.
class OpenThreads {
 public:
  void Add(std::shared_ptr<OpenTasks> tasks) {
    const sys::ForkBlocker fork_blocker;
    const std::lock_guard<std::mutex> lock(mutex_);
    all_.push_back(std::move(tasks));
  }
  void Remove(const std::shared_ptr<OpenTasks>& tasks) {
    const sys::ForkBlocker fork_blocker;
    const std::lock_guard<std::mutex> lock(mutex_);
    std::erase(all_, tasks);
  }
  std::vector<std::shared_ptr<OpenTasks>> All() {
    const sys::ForkBlocker fork_blocker;
    const std::lock_guard<std::mutex> lock(mutex_);
    return all_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<OpenTasks>> all_;
};

}  // namespace perfkit::itt
