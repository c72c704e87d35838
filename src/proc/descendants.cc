// Reads the parent of each process in /proc/PID/stat. Not every kernel has /proc/PID/task/TID/children, which lists the
// children of one process (CONFIG_PROC_CHILDREN).
#include "src/proc/descendants.h"

#include <optional>
#include <unordered_map>

#include "src/proc/stat.h"
#include "src/proc/threads.h"
#include "src/sys/files.h"

namespace perfkit::proc {

std::vector<pid_t> ListDescendants(pid_t pid, const std::string& proc) {
  const absl::StatusOr<std::vector<std::string>> names = sys::ListFolder(proc);
  if (!names.ok()) return {};
  std::unordered_map<pid_t, std::vector<pid_t>> children;
  for (const pid_t child : ParseTaskNames(*names)) {
    const std::optional<Stat> stat = ReadStat(child, proc);
    if (stat) children[stat->parent].push_back(child);
  }
  std::vector<pid_t> found;
  for (size_t next = 0; next <= found.size(); ++next) {
    // Each parent is looked up once: numbers that were used again while the files were read could form a ring.
    const auto node = children.extract(next == 0 ? pid : found[next - 1]);
    if (!node.empty()) found.insert(found.end(), node.mapped().begin(), node.mapped().end());
  }
  return found;
}

}  // namespace perfkit::proc
