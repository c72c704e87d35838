// The task that a thread ran at a time: labels for the samples of a Sampler. A Session has them by itself
// (SessionOptions::tasks).
//
//   absl::StatusOr<perfkit::TaskLabels> labels = perfkit::TaskLabels::Start(tasks);
//   sampler.Drain([&](const perfkit::SamplerRecord& record) {
//     perfkit::Dispatch(record, sampler.layout(), [&](const perfkit::Sample& sample) {
//       if (sample.task() && sample.time_ns()) Print(labels->At(sample.task()->tid, *sample.time_ns()).path);
//     });
//   });
//
// Each thread writes its switches into a log of 1 MiB, which has room for 43,000 of them. At reads the logs when it is
// asked for a time after the last reading: until then, logs are kept, also those of ended threads.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/task_counter.h"

namespace perfkit {

struct TaskLabel {
  // As ProfileSample::task: "level/load > file"; "" outside of tasks. Valid as long as the TaskLabels.
  std::string_view path;
  uint64_t number = 0;   // TaskCounter::Task::number; 0 outside of tasks, and if it is not known.
  bool is_known = true;  // False: `path` is "[task unknown]".
};

// Movable, not copyable: a moved-from one may only be assigned to or destroyed. One thread at a time may use it. May
// outlive the TaskCounter.
class TaskLabels {
 public:
  // Records which tasks run where from now on. A later recording of the same TaskCounter, by another TaskLabels or by a
  // Session, ends this one: later times are not known then. Keeps at most `max_bytes`, 24 for each switch; beyond that
  // it forgets the older half of each thread's switches, and all of ended threads.
  // Errors: FailedPrecondition in a forked child, and if the machine has no tick counter.
  static absl::StatusOr<TaskLabels> Start(const TaskCounter& tasks, size_t max_bytes = size_t{8} << 20);

  TaskLabels(TaskLabels&&) noexcept;
  TaskLabels& operator=(TaskLabels&&) noexcept;
  ~TaskLabels();

  // Returns the task that a thread of this process ran at `time_ns` by CLOCK_MONOTONIC, the default of
  // SamplerOptions::clock_id. is_known is false for times before Start or later than now, for times that were
  // forgotten or whose switches were lost, for the task that a thread was in at Start until that thread's next switch,
  // and for a task from its thread's last switch on if another thread has suspended or ended it. Threads beyond
  // TaskOptions::max_threads are outside of tasks. Allocates.
  TaskLabel At(uint32_t tid, uint64_t time_ns);

  // Returns the number of switches that logs had no room for.
  uint64_t lost() const;

 private:
  struct Impl;
  explicit TaskLabels(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace perfkit
