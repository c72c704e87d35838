// The number of a group is that of its node in kernfs, which readdir gives as the inode (kernfs_fop_readdir in
// fs/kernfs/dir.c).
#include "src/proc/cgroups.h"

#include <optional>

#include "src/proc/cgroup_mounts.h"
#include "src/sys/files.h"

namespace perfkit::proc {

// Breadth first: `groups` is also the list of folders that are still to be listed.
std::vector<Cgroup> ListCgroups(size_t most, const std::string& proc) {
  const absl::StatusOr<std::string> mountinfo = sys::ReadFile(proc + "/self/mountinfo");
  if (!mountinfo.ok()) return {};
  std::vector<CgroupMount> mounts = ParseCgroupMounts(*mountinfo, "perf_event");
  if (mounts.empty()) mounts = ParseCgroupMounts(*mountinfo, "");
  if (mounts.empty() || most == 0) return {};
  const CgroupMount& mount = mounts.front();
  const std::optional<uint64_t> top = sys::InodeOf(mount.folder);
  if (!top) return {};
  const std::string above = mount.root == "/" ? "" : mount.root;
  std::vector<Cgroup> groups = {{*top, above}};
  for (size_t i = 0; i < groups.size() && groups.size() < most; ++i) {
    const std::string path = groups[i].path;
    for (sys::Subfolder& below : sys::ListSubfolders(mount.folder + path.substr(above.size()))) {
      if (groups.size() < most) groups.push_back({below.inode, path + "/" + below.name});
    }
  }
  if (groups[0].path.empty()) groups[0].path = "/";
  return groups;
}

}  // namespace perfkit::proc
