// The zones of a profile and the parts of its tasks as one list, for formats that show both in the same way.
#pragma once

#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::exporters {

// A part of a task is a zone with its path. Without tasks, the profile's own zones. Must not outlive the profile.
class ZonesAndTasks {
 public:
  explicit ZonesAndTasks(const Profile& profile) : list_(profile.zones) {
    if (profile.task_parts.empty()) return;
    own_ = profile.zones;
    for (const ProfileTaskPart& part : profile.task_parts) {
      own_.push_back({.from_ns = part.from_ns, .to_ns = part.to_ns, .thread = part.thread, .name = part.task});
    }
    std::stable_sort(own_.begin(), own_.end(), [](const ProfileZone& a, const ProfileZone& b) {
      return std::tuple(a.from_ns, b.to_ns) < std::tuple(b.from_ns, a.to_ns);
    });
    list_ = own_;
  }
  ZonesAndTasks(const ZonesAndTasks&) = delete;
  ZonesAndTasks& operator=(const ZonesAndTasks&) = delete;

  std::span<const ProfileZone> list() const { return list_; }

 private:
  std::vector<ProfileZone> own_;
  std::span<const ProfileZone> list_;
};

}  // namespace perfkit::exporters
