// Threads that wait for each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace perfkit::session {

// A thread, and the one that holds the lock it waits for; 0: none.
struct LockWait {
  uint32_t tid = 0, holder = 0;
};

// Returns the cycles among the threads, as indexes of `waits`: each thread waits for the next one, and the last one for
// the first. A thread that waits for itself is a cycle. O(n log n).
std::vector<std::vector<size_t>> FindCycles(std::span<const LockWait> waits);

}  // namespace perfkit::session
