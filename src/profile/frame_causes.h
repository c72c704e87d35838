// Why a frame was slow: its parts, told as causes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
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

// The mean times of the frames that a frame is compared with.
struct UsualTimes {
  std::map<std::pair<std::string, uint32_t>, uint64_t> off_ns;  // of kWait, by WaitPiece::part and ProfileWait::detail
  std::map<std::pair<std::string, uint32_t>, uint64_t> sampled_ns;  // of the clock, by the zone's part and the stack
};

// The clock's samples in a frame, as indexes in Profile::samples, by the name of the zone's part (FramePart::name) that
// they fell in.
using ZoneSamples = std::map<std::string, std::vector<uint32_t>>;

// Returns the causes of a frame whose other members are set. `waits`: all of its times off the CPU, in any order.
std::vector<FrameCause> CausesOf(const Profile& profile, const SlowFrame& frame, std::vector<WaitPiece> waits,
                                 const ZoneSamples& samples, const UsualTimes& usual);

// Returns ProfileWait::detail of a wait: what it was for, with its address. 0 if that is unknown.
uint32_t DetailOf(const Profile& profile, const WaitPiece& piece);

// The cause of a wait, without its share.
struct WaitCause {
  FrameCause cause;
  // How long of the wait the blamed thread was preempted: that part of the wait is a priority inversion. 0 if that is
  // less than a quarter of it; all of the wait if it is more than three quarters.
  uint64_t inverted_ns = 0;
};

// Returns the cause of one wait of `thread`. `finds_threads`: whether to look at what other threads did meanwhile,
// which is O(samples).
WaitCause CauseOfWait(const Profile& profile, uint32_t thread, const WaitPiece& piece, bool finds_threads);

}  // namespace perfkit::profile
