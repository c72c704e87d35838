// The processes that a process has started, and those that these have started.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace perfkit::proc {

// Returns the descendants of process `pid` that live now, parents before their children, without `pid` itself. Lacks
// those whose parent has ended: they have another one. Reads one file of each process of the machine.
std::vector<pid_t> ListDescendants(pid_t pid, const std::string& proc = "/proc");

}  // namespace perfkit::proc
