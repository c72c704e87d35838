// The version of the running kernel, for what earlier ones lack.
#pragma once

#include <sys/utsname.h>

#include <cstdio>

namespace perfkit::testing {

inline bool KernelIsAtLeast(int major, int minor) {
  utsname name{};
  int running_major = 0, running_minor = 0;
  if (uname(&name) != 0 || std::sscanf(name.release, "%d.%d", &running_major, &running_minor) != 2) return false;
  return running_major > major || (running_major == major && running_minor >= minor);
}

}  // namespace perfkit::testing
