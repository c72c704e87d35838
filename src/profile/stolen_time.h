// The time that a frame's thread seemed to run, but did not: a hypervisor or interrupts had its CPU.
#pragma once

#include <cstdint>
#include <string_view>

#include "perfkit/profile.h"

namespace perfkit::profile {

// Name of the counter of a thread, in nanoseconds. A point's value is what was taken since the point before it.
inline constexpr std::string_view kStolenCounter = "taken by the machine";

// Returns what was taken of a frame, at least: what its counter has between two points in the frame.
uint64_t StolenIn(const Profile& profile, const ProfileZone& frame);

}  // namespace perfkit::profile
