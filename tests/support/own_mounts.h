// Mounts of the calling process alone, as in a container. They take root, which some containers do not suffice for.
#pragma once

#include <sched.h>
#include <sys/mount.h>

#include <string>

namespace perfkit::testing {

// Gives this process mounts of its own, which no other process sees. Returns false if that is not permitted.
inline bool OwnMounts() {
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

// Mounts an empty file system on a folder. The numbers of its inodes are small, and the same ones each time.
inline bool MountEmpty(const std::string& folder) {
  return mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=16m") == 0;
}

}  // namespace perfkit::testing
