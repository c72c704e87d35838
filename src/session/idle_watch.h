// Finds out for how long no thread of this process has run, apart from the session's own.
//
// A thread that has run since the last look has been put on a CPU more often than then, or is runnable still. The
// kernel counts that exactly, also runs of microseconds between two looks. CPU clocks would miss these, and those of a
// thread that runs are some milliseconds late.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace perfkit::session {

// What a thread did until it was looked at.
struct ThreadRuns {
  pid_t tid = 0;
  uint64_t times_run = 0;  // proc::ReadTimesRun
  bool runnable = false;   // runs, or waits for a CPU

  bool operator==(const ThreadRuns&) const = default;
};

// Not thread-safe.
class IdleWatch {
 public:
  // Adds what was found until `now_ns`, in rising order of tids. Returns for how long it has been found unchanged, with
  // no thread runnable: for so long no thread has run.
  uint64_t Update(std::vector<ThreadRuns> threads, uint64_t now_ns);

 private:
  std::vector<ThreadRuns> last_;
  uint64_t since_ns_ = UINT64_MAX;  // UINT64_MAX: a thread was runnable at the last look
};

// Returns all threads of this process but the calling one and `other` (0: none). A thread that ends meanwhile counts as
// runnable. Errors: as proc::ListThreads.
absl::StatusOr<std::vector<ThreadRuns>> LookAtRuns(pid_t other = 0);

}  // namespace perfkit::session
