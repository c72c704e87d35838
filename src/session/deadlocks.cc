// Each thread waits for at most one other. So a walk from holder to holder ends, reaches an earlier walk, or returns to
// one of its own threads, which is a cycle.
#include "src/session/deadlocks.h"

#include <algorithm>
#include <map>

namespace perfkit::session {

std::vector<std::vector<size_t>> FindCycles(std::span<const LockWait> waits) {
  std::map<uint32_t, size_t> index;
  for (size_t i = 0; i < waits.size(); ++i) index.emplace(waits[i].tid, i);
  std::vector<size_t> walk_of(waits.size());  // from 1; 0: not visited
  std::vector<std::vector<size_t>> cycles;
  for (size_t begin = 0; begin < waits.size(); ++begin) {
    std::vector<size_t> walk;
    size_t at = begin;
    while (walk_of[at] == 0) {
      walk_of[at] = begin + 1;
      walk.push_back(at);
      const auto next = waits[at].holder != 0 ? index.find(waits[at].holder) : index.end();
      if (next == index.end()) break;
      at = next->second;
    }
    const bool is_end = walk.empty() || at == walk.back();
    if (walk_of[at] != begin + 1 || (is_end && waits[at].holder != waits[at].tid)) continue;
    cycles.emplace_back(std::find(walk.begin(), walk.end(), at), walk.end());
  }
  return cycles;
}

}  // namespace perfkit::session
