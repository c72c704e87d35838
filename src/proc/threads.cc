// Lists /proc/PID/task.
#include "src/proc/threads.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/sys/files.h"

namespace perfkit::proc {

std::vector<pid_t> ParseTaskNames(std::span<const std::string> names) {
  std::vector<pid_t> threads;
  for (const std::string& name : names) {
    const std::optional<pid_t> tid = base::ParseNumber<pid_t>(name);
    if (tid && *tid > 0) threads.push_back(*tid);
  }
  std::sort(threads.begin(), threads.end());
  return threads;
}

absl::StatusOr<std::vector<pid_t>> ListThreads(pid_t pid, const std::string& proc) {
  const std::string who = pid == 0 ? "self" : absl::StrFormat("%d", pid);
  const auto names = sys::ListFolder(absl::StrFormat("%s/%s/task", proc, who));
  if (absl::IsNotFound(names.status())) {
    return absl::NotFoundError(absl::StrFormat("there is no process %d", pid));
  }
  if (!names.ok()) return names.status();
  return ParseTaskNames(*names);
}

}  // namespace perfkit::proc
