// Tells when the tasks that a tool observes have ended: its own command, and others by /proc.
#pragma once

#include <perfkit/target.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace tool {

// Returns true once the child process `pid` has ended, and leaves it to be waited for.
bool HasEnded(pid_t pid);

// The processes and threads among some targets. Distinguishes them from later tasks with the same pid or tid.
class TaskWatch {
 public:
  explicit TaskWatch(const std::vector<perfkit::Target>& targets);

  // Returns true once every one of them has ended; false if there is none to wait for.
  bool AllEnded() const;

 private:
  struct Task {
    std::string folder;      // "/proc/123"
    std::string start_time;  // as /proc/PID/stat has it
    bool is_process;
  };
  static bool Lives(const Task& task);

  std::vector<Task> tasks_;
};

}  // namespace tool
