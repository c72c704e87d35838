// Where the events of a target have to be opened: (thread, CPU) pairs.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/target.h"

namespace perfkit::open {

// perf_event_open's pid and cpu.
struct TaskCpu {
  pid_t pid = 0;
  int cpu = -1;

  friend bool operator==(const TaskCpu&, const TaskCpu&) = default;
};

// The (task, CPU) pairs of `target` now. `only_cpus`, when not empty, restricts CPU targets to those (a core PMU's, an uncore
// PMU's one CPU a package). NotFound when the task or CPU does not exist.
absl::StatusOr<std::vector<TaskCpu>> TaskCpusOf(const Target& target, const std::vector<int>& only_cpus = {});

// Those that the machine has, online or not.
absl::StatusOr<std::vector<int>> PresentCpus();

// "this thread", "thread 12", "CPU 3": for messages.
std::string Describe(const Target& target);

}  // namespace perfkit::open
