// Lists /proc/PID/task, and reads files of threads.
#include "src/proc/threads.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"

namespace perfkit::proc {
namespace {

// A status file may take several pages, for lists of groups and of CPUs.
constexpr size_t kMaxStatusBytes = 1 << 20;

std::string FolderOf(pid_t pid) { return pid == 0 ? "self" : absl::StrFormat("%d", pid); }

}  // namespace

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
  const auto names = sys::ListFolder(absl::StrFormat("%s/%s/task", proc, FolderOf(pid)));
  const bool is_mounted = !absl::IsNotFound(names.status()) || sys::IsMounted(sys::KernelFiles::kProc, proc);
  if (absl::IsNotFound(names.status()) && is_mounted && pid != 0) {
    return absl::NotFoundError(absl::StrFormat("there is no process %d", pid));
  }
  if (!names.ok()) return sys::WithMountRemedy(names.status(), sys::KernelFiles::kProc, proc);
  return ParseTaskNames(*names);
}

// "NSpid:", and the id of the process in each pid namespace from procfs's to its own (task_state in fs/proc/array.c).
// Before Linux 4.1 "Pid:" alone, the id in procfs's.
bool ShowsOtherIds(const std::string& proc) {
  const absl::StatusOr<std::string> text = sys::ReadFile(proc + "/self/status", kMaxStatusBytes);
  if (!text.ok()) return false;
  std::string_view all;
  std::optional<pid_t> shown;
  base::ForEachPiece(*text, '\n', [&](std::string_view line) {
    const auto [key, value] = base::Cut(line, ':');
    if (key == "NSpid") all = base::Trim(value);
    if (key == "Pid") shown = base::ParseNumber<pid_t>(base::Trim(value));
  });
  return all.find('\t') != std::string_view::npos || (shown && *shown != sys::kernel().getpid());
}

absl::StatusOr<std::string> ThreadName(pid_t pid, pid_t tid) {
  const absl::StatusOr<std::string> text = sys::ReadFile(absl::StrFormat("/proc/%s/task/%d/comm", FolderOf(pid), tid));
  if (!text.ok()) return text.status();
  return std::string(base::Trim(*text));
}

// "Uid:", and the real, effective, saved and file system user.
std::optional<uid_t> UserOf(pid_t tid, const std::string& proc) {
  const absl::StatusOr<std::string> text = sys::ReadFile(absl::StrFormat("%s/%d/status", proc, tid), kMaxStatusBytes);
  if (!text.ok()) return std::nullopt;
  std::optional<uid_t> user;
  base::ForEachPiece(*text, '\n', [&](std::string_view line) {
    const auto [key, users] = base::Cut(line, ':');
    if (key == "Uid") user = base::ParseNumber<uid_t>(base::Cut(base::Trim(users), '\t').first);
  });
  return user;
}

}  // namespace perfkit::proc
