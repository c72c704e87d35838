// The control groups (cgroups) of the machine: their numbers, which samples have, and their paths.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perfkit::proc {

struct Cgroup {
  uint64_t number = 0;  // cgroup_id of the kernel, the inode number of the group's folder.
  std::string path;     // "/", "/system.slice/ssh.service": from the root of the cgroup namespace.
};

// Returns the groups of the hierarchy that perf uses, at most `most` of them: of v1 with the controller "perf_event" if
// that is mounted, else of v2. Empty if neither is mounted. `proc` is a folder: "/proc".
std::vector<Cgroup> ListCgroups(size_t most, const std::string& proc = "/proc");

}  // namespace perfkit::proc
