// /proc/PID/cgroup names groups from the root of the hierarchy, or of the cgroup namespace; mountinfo has the mount's
// root likewise.
#include "src/proc/cpu_quota.h"

#include "src/base/number.h"
#include "src/base/text.h"
#include "src/proc/cgroup_mounts.h"
#include "src/sys/files.h"

namespace perfkit::proc {
namespace {

constexpr size_t kMaxBytes = 4096;

bool HasCpu(std::string_view controllers) {
  bool has_cpu = false;
  base::ForEachPiece(controllers, ',', [&](std::string_view controller) { has_cpu |= controller == "cpu"; });
  return has_cpu;
}

// Adds the folders of a group and of those around it. Returns false if the mount does not show the group.
bool AddGroups(std::string_view group, const CgroupMount& mount, std::vector<std::string>& folders) {
  const std::string_view root = mount.root == "/" ? std::string_view() : mount.root;
  const bool is_below = group.starts_with(root) && (group.size() == root.size() || group[root.size()] == '/');
  if (!is_below || group.find("/..") != group.npos) return false;
  for (std::string_view below = group.substr(root.size()); !below.empty() && below != "/";) {
    folders.push_back(mount.folder + std::string(below));
    below = below.substr(0, below.rfind('/'));
  }
  folders.push_back(mount.folder);
  return true;
}

bool HasQuota(const std::string& group) {
  if (const absl::StatusOr<std::string> max = sys::ReadFile(group + "/cpu.max", kMaxBytes); max.ok()) {
    return base::ParseNumber(base::Cut(*max, ' ').first).has_value();  // or "max"
  }
  const absl::StatusOr<std::string> quota = sys::ReadFile(group + "/cpu.cfs_quota_us", kMaxBytes);
  return quota.ok() && base::ParseNumber(base::Trim(*quota)).has_value();  // or -1
}

}  // namespace

std::vector<std::string> ParseCpuGroups(std::string_view cgroup, std::string_view mountinfo) {
  std::vector<std::string> folders;
  base::ForEachPiece(cgroup, '\n', [&](std::string_view line) {  // "1:cpu,cpuacct:/group"; of v2 "0::/group"
    const auto [number, rest] = base::Cut(line, ':');
    const auto [controllers, group] = base::Cut(rest, ':');
    const bool is_v2 = number == "0" && controllers.empty();
    if (!is_v2 && !HasCpu(controllers)) return;
    for (const CgroupMount& mount : ParseCgroupMounts(mountinfo, is_v2 ? "" : "cpu")) {
      if (AddGroups(group, mount, folders)) return;
    }
  });
  return folders;
}

std::vector<std::string> CpuQuotaGroups() {
  const absl::StatusOr<std::string> cgroup = sys::ReadFile("/proc/self/cgroup");
  const absl::StatusOr<std::string> mountinfo = sys::ReadFile("/proc/self/mountinfo");
  if (!cgroup.ok() || !mountinfo.ok()) return {};
  std::vector<std::string> groups = ParseCpuGroups(*cgroup, *mountinfo);
  std::erase_if(groups, [](const std::string& group) { return !HasQuota(group); });
  return groups;
}

std::optional<uint64_t> ParseThrottledNs(std::string_view cpu_stat) {
  std::optional<uint64_t> ns;
  base::ForEachPiece(cpu_stat, '\n', [&](std::string_view line) {
    const auto [key, value] = base::Cut(line, ' ');
    if (key == "throttled_time") ns = base::ParseNumber(base::Trim(value));
    if (key != "throttled_usec") return;
    ns = base::ParseNumber(base::Trim(value));
    if (ns) *ns *= 1000;
  });
  return ns;
}

std::optional<uint64_t> ReadThrottledNs(const std::string& group) {
  const absl::StatusOr<std::string> stat = sys::ReadFile(group + "/cpu.stat", kMaxBytes);
  return stat.ok() ? ParseThrottledNs(*stat) : std::nullopt;
}

}  // namespace perfkit::proc
