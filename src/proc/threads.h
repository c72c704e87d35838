// The threads of a process: the numbers in /proc/PID/task.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace perfkit::proc {

// The thread ids among the names of a task folder, in rising order. Anything else in there is passed over.
std::vector<pid_t> ParseTaskNames(std::span<const std::string> names);

// The threads that process `pid` has now (0: this process), in rising order: some may be gone and others born by the
// time that they are used. NotFound when there is no such process.
absl::StatusOr<std::vector<pid_t>> ListThreads(pid_t pid, const std::string& proc = "/proc");

}  // namespace perfkit::proc
