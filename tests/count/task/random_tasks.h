// Tasks that random threads run in random parts, each with a known number of page faults.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "perfkit/task_counter.h"
#include "tests/support/work.h"

namespace perfkit {

// The faults that a task has made, by what it touched.
struct RandomTask {
  TaskCounter::Task task{};
  uint64_t parts_left = 0;
  uint64_t touched = 0;
};

// A queue from which each thread takes another task.
class TaskQueue {
 public:
  // Returns a random task; nullptr if there is none now.
  RandomTask* Take(std::minstd_rand& random) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ready_.empty()) return nullptr;
    std::swap(ready_[random() % ready_.size()], ready_.back());
    RandomTask* const task = ready_.back();
    ready_.pop_back();
    return task;
  }
  void Put(RandomTask* task) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ready_.push_back(task);
  }

 private:
  std::mutex mutex_;
  std::vector<RandomTask*> ready_;
};

// Sums of all threads: pages that tasks have touched, and faults that the kernel counted beside these.
struct TouchedPages {
  std::atomic<uint64_t> in_tasks{0}, outside{0}, others{0};
};

// Checks each task's faults: those that it touched, and all together at most the others of all threads.
inline void CheckFaults(const std::deque<RandomTask>& tasks, const TouchedPages& pages) {
  uint64_t counted = 0, touched = 0, too_few = 0;
  for (const RandomTask& task : tasks) {
    const Count faults = task.task.totals().counts[0];
    REQUIRE(faults.validity.counted());
    counted += faults.value;
    touched += task.touched;
    too_few += faults.value < task.touched ? 1 : 0;
  }
  CHECK(too_few == 0);
  CHECK(touched == pages.in_tasks);
  CHECK(testing::AreFaultsOf(counted, touched, pages.others));
}

}  // namespace perfkit
