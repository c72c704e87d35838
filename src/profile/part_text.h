// What a thread did in a part of a frame, in words.
#pragma once

#include <string>

#include "perfkit/slow_frames.h"

namespace perfkit::profile {

// "ran in physics/solve", "waited: futex 0x7f12..., held by loader (1234) in Load", "preempted: others ran, ...". Of a
// wait it is the longest one. A line without control characters.
std::string PartText(const Profile& profile, const FramePart& part);

}  // namespace perfkit::profile
