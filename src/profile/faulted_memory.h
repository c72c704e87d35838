// Where the page faults of a frame were: which memory was touched, in which zone, by which stack.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perfkit/profile.h"
#include "perfkit/slow_frames.h"

namespace perfkit::profile {

// Returns SlowFrame::faults: the sampled page faults of the frame's thread. Ranges that overlap and have the same name
// are one, that of the largest: a mapping that grew between two readings.
std::vector<FaultedMemory> FaultsByMemory(const Profile& profile, const ProfileZone& frame);

// Returns the index of the memory that most faults of a zone were in; kNoMemory if it is unknown.
uint32_t MostFaulted(const SlowFrame& frame, const std::string& zone);

// "[heap]", "/data/level.bin", "[anon:textures] of 16 MiB at 0x7f12a0000000"; "memory that is not known" for kNoMemory.
std::string MemoryText(const Profile& profile, uint32_t memory);

// "page faults in load, 3 of them major: /data/level.bin".
std::string FaultText(const Profile& profile, const FaultedMemory& faults);

// Returns those that a report tells: the largest ones, if the frame has far more faults than usual, and those with
// major faults.
std::vector<FaultedMemory> ToldFaults(const SlowFrame& frame);

}  // namespace perfkit::profile
