// A cause of a slow frame in a sentence.
#pragma once

#include <string>

#include "perfkit/profile.h"
#include "perfkit/slow_frames.h"

namespace perfkit::profile {

// Returns "a lock that loader (1234) held in LoadLevel(), wanted in Render()".
std::string CauseText(const Profile& profile, const FrameCause& cause);

}  // namespace perfkit::profile
