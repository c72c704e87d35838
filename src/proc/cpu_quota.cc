// A mount shows a part of a hierarchy: the group that is its root, and those below. /proc/PID/cgroup names groups from
// the root of the hierarchy, or of the cgroup namespace; mountinfo has the mount's root likewise.
#include "src/proc/cpu_quota.h"

#include <algorithm>

#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/files.h"

namespace perfkit::proc {
namespace {

constexpr size_t kMaxBytes = 4096;

std::vector<std::string_view> Pieces(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  base::ForEachPiece(text, separator, [&](std::string_view piece) { pieces.push_back(piece); });
  return pieces;
}

bool HasPiece(std::string_view list, std::string_view piece) {
  const std::vector<std::string_view> pieces = Pieces(list, ',');
  return std::find(pieces.begin(), pieces.end(), piece) != pieces.end();
}

// Where a hierarchy is mounted, and which of its groups is the mount's root.
struct Mount {
  std::string_view root, folder;
};

// A line is "36 25 0:31 ROOT FOLDER rw,... [optional fields] - cgroup2 cgroup2 rw,...".
std::optional<Mount> ParseMount(std::string_view line, bool is_v2) {
  const std::vector<std::string_view> fields = Pieces(line, ' ');
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (dash - fields.begin() < 5 || fields.end() - dash < 4) return std::nullopt;
  const bool is_cpu = is_v2 ? dash[1] == "cgroup2" : dash[1] == "cgroup" && HasPiece(dash[3], "cpu");
  if (!is_cpu) return std::nullopt;
  return Mount{fields[3], fields[4]};
}

// Adds the folders of a group and of those around it.
void AddGroups(std::string_view group, const Mount& mount, std::vector<std::string>& folders) {
  const std::string_view root = mount.root == "/" ? "" : mount.root;
  const bool is_below = group.starts_with(root) && (group.size() == root.size() || group[root.size()] == '/');
  if (!is_below || group.find("/..") != group.npos) return;
  for (std::string_view below = group.substr(root.size()); !below.empty() && below != "/";) {
    folders.push_back(std::string(mount.folder) + std::string(below));
    below = below.substr(0, below.rfind('/'));
  }
  folders.emplace_back(mount.folder);
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
    if (!is_v2 && !HasPiece(controllers, "cpu")) return;
    std::optional<Mount> mount;
    base::ForEachPiece(mountinfo, '\n', [&](std::string_view one) {
      if (!mount) mount = ParseMount(one, is_v2);
    });
    if (mount) AddGroups(group, *mount, folders);
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
