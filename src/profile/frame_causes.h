// Why a frame was slow: its parts, told as causes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "perfkit/profile.h"
#include "perfkit/slow_frames.h"

namespace perfkit::profile {

// A time off the CPU within a frame.
struct WaitPiece {
  FramePart::Kind kind = FramePart::Kind::kWait;
  std::string part;  // FramePart::name
  uint64_t from_ns = 0, to_ns = 0;
  uint32_t sample = 0;  // in Profile::samples

  uint64_t duration_ns() const { return to_ns - from_ns; }
};

// Returns the causes of a frame whose other members are set. `waits`: all of its times off the CPU, in any order.
std::vector<FrameCause> CausesOf(const Profile& profile, const SlowFrame& frame, std::vector<WaitPiece> waits);

// Returns the cause of one wait of `thread`, without its share. `finds_threads`: whether to look for the thread that
// was waited for if no record names it, which is O(samples).
FrameCause CauseOfWait(const Profile& profile, uint32_t thread, const WaitPiece& piece, bool finds_threads);

}  // namespace perfkit::profile
