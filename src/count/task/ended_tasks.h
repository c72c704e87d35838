// Sums over the ended tasks of one name, and what was not counted of its tasks.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "src/count/frame/counted_events.h"
#include "src/count/task/shared_histogram.h"

namespace perfkit::count {

// Distributions over tasks: each task is one value, except those in TaskStats::cross_thread. Thread-safe, except
// `created`.
struct EndedTasks {
  explicit EndedTasks(size_t events) : values(events) {}

  uint64_t created = 0;            // Changed and read with the TaskCounter's mutex held.
  std::atomic<uint64_t> tasks{0};  // Number of ended tasks, including those without values.
  // Set once a task of this name was not counted for a time: because of a wrong use (TaskStats::cross_thread) of it or
  // of a task that interrupted it, or on a thread that was refused. Relaxed: nothing else depends on them.
  std::atomic<bool> cross_thread{false}, refused{false};
  SharedHistogram run_ns, wait_ns;
  std::vector<SharedHistogram> values;  // By event: counts of the tasks for which it was never off its counter.
};

}  // namespace perfkit::count
