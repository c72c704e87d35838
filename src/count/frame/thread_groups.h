// The zones of threads by the names of the threads: those that live, and those that have ended.
//
// What an ended thread has counted is folded into its group, so that its tree can be given back; nothing is lost but
// which thread it was.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/count/frame/zone_merge.h"

namespace perfkit::count {

// A group of threads with one name, merged.
struct ThreadGroup {
  std::string name;
  uint32_t live = 0;
  ZoneMerge zones;
};

// Returns the group with that name, adding it if there is none. Valid until the next call. `events`: of its zones.
inline ThreadGroup& GroupNamed(std::vector<ThreadGroup>& groups, const std::string& name, size_t events) {
  for (ThreadGroup& group : groups) {
    if (group.name == name) return group;
  }
  return groups.emplace_back(ThreadGroup{name, 0, ZoneMerge(events)});
}

// Not thread-safe.
class EndedThreads {
 public:
  // Adds a thread whose last frame was closed.
  void Add(const std::string& name, const ZoneTree& tree) {
    dropped_ += tree.dropped();
    mismatched_ += tree.mismatched();
    GroupNamed(groups_, name, tree.shape().events).zones.Add(tree);
  }
  const std::vector<ThreadGroup>& groups() const { return groups_; }
  uint64_t dropped() const { return dropped_; }
  uint64_t mismatched() const { return mismatched_; }
  void Clear() { groups_.clear(); }

 private:
  std::vector<ThreadGroup> groups_;
  uint64_t dropped_ = 0, mismatched_ = 0;
};

}  // namespace perfkit::count
