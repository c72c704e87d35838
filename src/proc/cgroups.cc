// A mount shows a part of a hierarchy: the group that is its root, and those below. The number of a group is that of
// its node in kernfs, which readdir gives as the inode (kernfs_fop_readdir in fs/kernfs/dir.c).
#include "src/proc/cgroups.h"

#include <algorithm>

#include "src/base/text.h"
#include "src/sys/files.h"

namespace perfkit::proc {
namespace {

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  base::ForEachPiece(text, separator, [&](std::string_view piece) { pieces.push_back(piece); });
  return pieces;
}

// Where a hierarchy is mounted, and which of its groups is the mount's root.
struct Hierarchy {
  std::string root, folder;
};

// Returns the hierarchy of a line of mountinfo: of v1 with that controller, or if `controller` is "", of v2. A line is
// "36 25 0:31 ROOT FOLDER rw,... [optional fields] - cgroup2 cgroup2 rw,...".
std::optional<Hierarchy> ParseHierarchy(std::string_view line, std::string_view controller) {
  const std::vector<std::string_view> fields = Split(line, ' ');
  const auto dash = std::find(fields.begin(), fields.end(), "-");
  if (dash - fields.begin() < 5 || fields.end() - dash < 4) return std::nullopt;
  const std::vector<std::string_view> options = Split(dash[3], ',');
  const bool is_it =
      controller.empty() ? dash[1] == "cgroup2" : dash[1] == "cgroup" && std::ranges::count(options, controller) != 0;
  if (!is_it) return std::nullopt;
  return Hierarchy{std::string(fields[3]), std::string(fields[4])};
}

std::optional<Hierarchy> FindHierarchy(std::string_view mountinfo, std::string_view controller) {
  std::optional<Hierarchy> found;
  base::ForEachPiece(mountinfo, '\n', [&](std::string_view line) {
    if (!found) found = ParseHierarchy(line, controller);
  });
  return found;
}

}  // namespace

// Breadth first: `groups` is also the list of folders that are still to be listed.
std::vector<Cgroup> ListCgroups(size_t most, const std::string& proc) {
  const absl::StatusOr<std::string> mountinfo = sys::ReadFile(proc + "/self/mountinfo");
  if (!mountinfo.ok()) return {};
  std::optional<Hierarchy> hierarchy = FindHierarchy(*mountinfo, "perf_event");
  if (!hierarchy) hierarchy = FindHierarchy(*mountinfo, "");
  const std::optional<uint64_t> top = hierarchy ? sys::InodeOf(hierarchy->folder) : std::nullopt;
  if (!top || most == 0) return {};
  const std::string above = hierarchy->root == "/" ? "" : hierarchy->root;
  std::vector<Cgroup> groups = {{*top, above}};
  for (size_t i = 0; i < groups.size() && groups.size() < most; ++i) {
    const std::string path = groups[i].path;
    for (sys::Subfolder& below : sys::ListSubfolders(hierarchy->folder + path.substr(above.size()))) {
      if (groups.size() < most) groups.push_back({below.inode, path + "/" + below.name});
    }
  }
  if (groups[0].path.empty()) groups[0].path = "/";
  return groups;
}

}  // namespace perfkit::proc
