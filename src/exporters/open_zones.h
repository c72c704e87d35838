// Which zones and frames were open on a thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::exporters {

// Zones need not nest. Keeps two entries for each zone of the profile, and each combination of names once.
class OpenZones {
 public:
  // What was open together.
  struct Open {
    std::string zone;           // Path of the zones, outermost first: "physics/collide". "" if none was open.
    std::string frame;          // Names of the frames: "frame 12", or "frame 12, stream 3". "" if none was open.
    uint64_t frame_number = 0;  // 12 of "frame 12", the frames that FrameCounter::Mark ends; 0 if none was open.
  };

  explicit OpenZones(const Profile& profile);

  // Returns what was open on the thread, as an index of open(); 0 if nothing was. A zone is open from its from_ns until
  // before its to_ns. O(log zones).
  uint32_t At(uint32_t thread, uint64_t time_ns) const;
  const std::vector<Open>& open() const { return open_; }

 private:
  // What is open from a time on.
  struct Change {
    uint64_t time_ns = 0;
    uint32_t open = 0;
  };

  std::vector<std::vector<Change>> changes_;  // By thread, in order of time.
  std::vector<Open> open_{{}};
};

}  // namespace perfkit::exporters
