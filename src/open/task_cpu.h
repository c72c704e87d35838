// The (thread, CPU) pairs on which the events of a target are opened.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/target.h"

namespace perfkit::open {

// The pid and cpu arguments of perf_event_open.
struct TaskCpu {
  pid_t pid = 0;
  int cpu = -1;

  friend bool operator==(const TaskCpu&, const TaskCpu&) = default;
};

// Returns the current (task, CPU) pairs of `target`. `only_cpus`, if not empty, restricts CPU targets to those (of a
// core PMU, or the one CPU in each package of an uncore PMU). Errors: NotFound if the task or CPU does not exist.
absl::StatusOr<std::vector<TaskCpu>> TaskCpusOf(const Target& target, const std::vector<int>& only_cpus = {});

// Returns the CPUs of the machine, online or not.
absl::StatusOr<std::vector<int>> PresentCpus();

// Returns "this thread", "thread 12", "CPU 3": for messages.
std::string Describe(const Target& target);

}  // namespace perfkit::open
