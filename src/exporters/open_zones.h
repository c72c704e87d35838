// Which zones and frames were open on a thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit::exporters {

// Zones need not nest. Keeps two entries for each zone of the profile, and each combination of zones once.
class OpenZones {
 public:
  // Indexes of texts(); 0 ("") if none was open.
  struct Open {
    uint32_t zone = 0;          // Path of the open zones, outermost first: "physics/collide".
    uint32_t frame = 0;         // Names of the open frames: "frame 12", or "frame 12, stream 3".
    uint64_t frame_number = 0;  // 12 of "frame 12", the frames that FrameCounter::Mark ends; 0 if none is open.
    bool operator==(const Open&) const = default;
  };

  explicit OpenZones(const Profile& profile);

  // Returns what was open on the thread. A zone is open from its from_ns until before its to_ns.
  Open At(uint32_t thread, uint64_t time_ns) const;
  const std::vector<std::string>& texts() const { return texts_; }

 private:
  // What is open from a time on.
  struct Change {
    uint64_t time_ns = 0;
    Open open{};
  };

  std::vector<std::vector<Change>> changes_;  // By thread, in order of time.
  std::vector<std::string> texts_{""};
};

}  // namespace perfkit::exporters
