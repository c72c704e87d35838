// What the tasks of one name leave when they end.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "src/count/frame/counted_events.h"
#include "src/count/task/shared_histogram.h"

namespace perfkit::count {

// Distributions over tasks, each as a whole. Thread-safe: see SharedHistogram.
struct EndedTasks {
  explicit EndedTasks(size_t events) : values(events) {}

  std::atomic<uint64_t> tasks{0};
  SharedHistogram run_ns, wait_ns;
  std::vector<SharedHistogram> values;  // By event; of tasks that were on their counters all the time.
};

}  // namespace perfkit::count
