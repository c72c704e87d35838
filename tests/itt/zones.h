// Finds zones in a FrameCounter.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "perfkit/frame_counter.h"

namespace perfkit::itt {

// The zones of a FrameCounter at one moment.
class Zones {
 public:
  explicit Zones(const FrameCounter& frames) : all_(frames.zones()) {}

  // Returns the path of a zone without its root: "update > app: work".
  std::string Path(const ZoneStats& zone) const {
    if (zone.depth <= 1) return zone.name;
    return Path(all_[zone.parent]) + " > " + zone.name;
  }
  // Returns the calls of all zones with this path, of all groups of threads or of one ("" is the marking thread's).
  uint64_t Calls(std::string_view path) const {
    return Sum(path, [](const ZoneStats& zone) { return zone.calls; });
  }
  uint64_t CallsOn(std::string_view thread, std::string_view path) const {
    return Sum(path, [thread](const ZoneStats& zone) { return zone.thread == thread ? zone.calls : 0; });
  }
  // The same for zones of any path by their last name, which are not inside of each other.
  uint64_t CallsAnywhere(std::string_view name) const {
    uint64_t calls = 0;
    for (const ZoneStats& zone : all_) calls += zone.name == name ? zone.calls : 0;
    return calls;
  }
  uint64_t TotalAnywhere(std::string_view name) const {
    uint64_t total = 0;
    for (const ZoneStats& zone : all_) total += zone.name == name ? zone.total[0].value : 0;
    return total;
  }
  // Returns the count of the first event, with zones inside and without.
  uint64_t Total(std::string_view path) const {
    return Sum(path, [](const ZoneStats& zone) { return zone.total[0].value; });
  }
  uint64_t Self(std::string_view path) const {
    return Sum(path, [](const ZoneStats& zone) { return zone.self[0].value; });
  }

 private:
  template <class Value>
  uint64_t Sum(std::string_view path, Value value) const {
    uint64_t sum = 0;
    for (const ZoneStats& zone : all_) sum += zone.depth > 0 && Path(zone) == path ? value(zone) : 0;
    return sum;
  }

  std::vector<ZoneStats> all_;
};

}  // namespace perfkit::itt
