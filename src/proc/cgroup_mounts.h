// Where the hierarchies of control groups (cgroups) are mounted.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace perfkit::proc {

// A mount shows a part of a hierarchy: the group that is its root, and those below.
struct CgroupMount {
  std::string root;    // Path of that group: "/", "/docker/ab".
  std::string folder;  // Where it is mounted: "/sys/fs/cgroup".
};

// Returns the mounts of a hierarchy: of that of v1 with `controller`, or of v2 if `controller` is "". Those that show
// most, by the length of their root, come first. `mountinfo`: the text of /proc/PID/mountinfo (proc(5)).
std::vector<CgroupMount> ParseCgroupMounts(std::string_view mountinfo, std::string_view controller);

}  // namespace perfkit::proc
