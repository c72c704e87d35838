// Who preempted the thread of a slow frame, for how much of the frame's excess.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "perfkit/profile.h"
#include "src/profile/frame_causes.h"

namespace perfkit::profile {

class PreempterShares {
 public:
  void Add(const Profile& profile, const WaitPiece& preempted, int64_t share_ns);
  // Returns the one with the largest share, and how many others there were, as PreempterText. Returns "" if more than
  // that share is not known.
  std::string Text(const Profile& profile) const;

 private:
  struct Share {
    ProfilePreempter preempter{};
    int64_t ns = 0;
  };
  std::map<std::pair<uint32_t, uint32_t>, Share> shares_;  // by tid and command
  int64_t unknown_ns_ = 0;
  uint32_t max_others_ = 0;  // of one wait
};

}  // namespace perfkit::profile
