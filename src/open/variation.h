// Tries variations of a request that the kernel refused.
#pragma once

#include <sys/types.h>

#include "src/sys/perf_abi.h"

namespace perfkit::open {

// The arguments of perf_event_open.
struct Variation {
  sys::PerfEventAttr attr;
  pid_t pid;
  int cpu;
  int group_fd;

  bool operator==(const Variation& other) const;
};

// Returns the kernel's answer: 0, or an errno. An event that opens is closed before it can count.
int Try(const Variation& variation);

// Returns true for the errnos of a missing right.
bool IsDenied(int error);

// Returns a request that every user may open if perf_event_open works at all: it counts nothing, in user space only.
Variation Dummy(pid_t pid);

}  // namespace perfkit::open
