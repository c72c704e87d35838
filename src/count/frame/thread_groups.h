// Zones merged by the names of their threads, both live and ended ones.
//
// The counts of a thread that ends are added to its group, and its tree is freed. Only which thread counted them is
// lost. Ended threads with more than kMaxNames names share a group, because threads may have a new name each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "src/count/frame/zone_merge.h"

namespace perfkit::count {

// The merged zones of all threads with one name.
struct ThreadGroup {
  std::string name;
  uint32_t live = 0;
  ZoneMerge zones;
};

// Returns the group with that name, adding it if there is none. Valid until the next call. `events`: how many its zones
// have.
inline ThreadGroup& GroupNamed(std::vector<ThreadGroup>& groups, const std::string& name, size_t events) {
  for (ThreadGroup& group : groups) {
    if (group.name == name) return group;
  }
  return groups.emplace_back(ThreadGroup{name, 0, ZoneMerge(events)});
}

// Not thread-safe.
class EndedThreads {
 public:
  static constexpr size_t kMaxNames = 256;

  // Adds a thread whose last frame was closed.
  void Add(const std::string& name, const ZoneTree& tree) {
    dropped_ += tree.dropped();
    mismatched_ += tree.mismatched();
    const bool has_room = groups_.size() < kMaxNames || Has(name);
    GroupNamed(groups_, has_room ? name : "(more threads)", tree.shape().events).zones.Add(tree);
  }
  const std::vector<ThreadGroup>& groups() const { return groups_; }
  uint64_t dropped() const { return dropped_; }
  uint64_t mismatched() const { return mismatched_; }
  void Clear() { groups_.clear(); }

 private:
  bool Has(const std::string& name) const {
    return std::any_of(groups_.begin(), groups_.end(), [&](const ThreadGroup& group) { return group.name == name; });
  }

  std::vector<ThreadGroup> groups_;
  uint64_t dropped_ = 0, mismatched_ = 0;
};

}  // namespace perfkit::count
