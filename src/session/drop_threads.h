// Removes threads from a profile.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::session {

// Drops the threads for which `is_dropped` is set, with their samples. Returns how many samples that was. A thread that
// holds a lock for which a remaining thread waits stays, too, but without samples.
uint64_t DropThreads(Profile& profile, const std::vector<bool>& is_dropped);

// Drops all threads whose last name does not match the glob pattern. A note says how many samples that was.
void KeepThreads(Profile& profile, const std::string& pattern);

}  // namespace perfkit::session
