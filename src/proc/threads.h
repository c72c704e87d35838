// The threads of a process: the numbers in /proc/PID/task; and the name and the user of one.
#pragma once

#include <sys/types.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace perfkit::proc {

// Returns the thread ids among the names in a task folder, in rising order. Ignores all other names.
std::vector<pid_t> ParseTaskNames(std::span<const std::string> names);

// Returns the current threads of process `pid` (0 means this process), in rising order. Threads may end or start before
// the caller uses the list. Errors: NotFound if there is no such process, or, with a remedy, if procfs is not
// mounted.
absl::StatusOr<std::vector<pid_t>> ListThreads(pid_t pid, const std::string& proc = "/proc");

// Returns true if the ids that procfs shows are those of another pid namespace than this process's: the process has a
// namespace of its own, and procfs was not mounted anew in it. perf_event_open takes ids of this process's namespace.
bool ShowsOtherIds(const std::string& proc = "/proc");

// Returns the name of a thread of process `pid` (0 means this process). Errors: NotFound if there is no such thread.
absl::StatusOr<std::string> ThreadName(pid_t pid, pid_t tid);

// Returns the real user ID of thread `tid` of any process; nullopt if procfs does not show it. The owner of its folder
// in procfs is another user, root, if the process is not dumpable (task_dump_owner in fs/proc/base.c).
std::optional<uid_t> UserOf(pid_t tid, const std::string& proc = "/proc");

}  // namespace perfkit::proc
