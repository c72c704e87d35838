// Numbers for the threads of a profile, in formats that tell threads apart by their pid and tid. Several may have the
// same ones: threads of two containers, or of one process one after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::exporters {

// Returns Profile::threads. Of those with the same pid and tid, the first keeps its tid, and the others have free ones
// that no thread of the kernel can have.
inline std::vector<ProfileThread> WithUniqueTids(const Profile& profile) {
  std::vector<ProfileThread> threads = profile.threads;
  uint32_t free = ProfileThread::kFirstSum;
  for (const ProfileThread& thread : threads) free = std::max(free, thread.tid + 1);
  std::set<std::pair<uint32_t, uint32_t>> taken;
  for (ProfileThread& thread : threads) {
    while (!taken.emplace(thread.pid, thread.tid).second) thread.tid = free++;
  }
  return threads;
}

}  // namespace perfkit::exporters
