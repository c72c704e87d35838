// What the other threads of a process ran while a frame was under way.
#pragma once

#include <vector>

#include "perfkit/profile.h"
#include "perfkit/slow_frames.h"

namespace perfkit::profile {

// Returns SlowFrame::others.
std::vector<FrameThread> BusyBeside(const Profile& profile, const ProfileZone& frame);

}  // namespace perfkit::profile
