// The events that tests of frames count, and zones by name.
#pragma once

#include <catch2/catch.hpp>
#include <string_view>
#include <vector>

#include "perfkit/frame_counter.h"

namespace perfkit {

inline const std::vector<EventSpec> kEvents = {"task-clock", "page-faults", "context-switches"};
inline constexpr size_t kClock = 0, kFaults = 1, kSwitches = 2;

inline const ZoneStats* Find(const std::vector<ZoneStats>& zones, std::string_view name, std::string_view thread = "") {
  for (const ZoneStats& zone : zones) {
    if (zone.name == name && zone.thread == thread) return &zone;
  }
  return nullptr;
}

// children + self = parent, exactly, for the wall and every counter that has numbers.
inline void CheckLaw(const std::vector<ZoneStats>& zones, size_t events) {
  for (size_t z = 0; z < zones.size(); ++z) {
    uint64_t wall_ns = zones[z].self_wall_ns;
    for (size_t c = 0; c < zones.size(); ++c) {
      if (c != z && zones[c].parent == z) wall_ns += zones[c].wall_ns;
    }
    REQUIRE(wall_ns == zones[z].wall_ns);
    REQUIRE(zones[z].self_wall_ns <= zones[z].wall_ns);
    for (size_t i = 0; i < events; ++i) {
      uint64_t sum = zones[z].self[i].value;
      for (size_t c = 0; c < zones.size(); ++c) {
        if (c != z && zones[c].parent == z) sum += zones[c].total[i].value;
      }
      REQUIRE(sum == zones[z].total[i].value);
      REQUIRE(zones[z].self[i].value <= zones[z].total[i].value);
    }
  }
}

}  // namespace perfkit
