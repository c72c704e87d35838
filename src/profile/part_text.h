// What a thread did in a part of a frame, in words.
#pragma once

#include <string>

#include "perfkit/slow_frames.h"

namespace perfkit::profile {

// "ran in physics/solve", "waited: futex 0x7f12..., held by loader (1234) in Load", "preempted: others ran, ...". Of a
// wait it is the longest one. A line without control characters.
std::string PartText(const Profile& profile, const FramePart& part);

// "the CPU ran at 1.20 GHz, usually at 3.40 GHz"; "" if that is not known, or if they differ by less than 5 %.
std::string FrequencyText(const SlowFrame& frame);

}  // namespace perfkit::profile
