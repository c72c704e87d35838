// Tells threads that are on a CPU from those that wait for one: both have the state 'R'.
#pragma once

#include <sys/types.h>

#include <span>
#include <vector>

namespace perfkit::session {

// Returns for each thread of this process whether it is on a CPU. Waits for the threads in state 'R', for 1 ms at most.
std::vector<bool> AreOnCpu(std::span<const pid_t> tids);

}  // namespace perfkit::session
