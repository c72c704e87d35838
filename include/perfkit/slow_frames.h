// The slowest frames of a profile, and what each spent its time on beyond the usual.
//
//   auto session = perfkit::Session::Start({.clock = perfkit::SessionClock::kWall, .frames = &frames});
//   ...
//   perfkit::Profile profile = *session->Stop();
//   fputs(perfkit::FormatSlowFrames(profile).c_str(), stdout);
//
//   a frame   |--- physics ---|== off the CPU: futex ... ==|--- physics ---|-- render --|
//
// Each moment of a frame is in one part of it: off the CPU, waiting for something, or else in the innermost zone that
// was open. So the parts add up to the frame, exactly. Frames of a kind are those of one thread whose names are the
// same but for a number at the end: "frame 12".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "perfkit/profile.h"

namespace perfkit {

// A part of a frame's time on its thread.
struct FramePart {
  enum class Kind : uint8_t {
    kZone,       // on a CPU; if the profile has no times off the CPU, perhaps also off it
    kWait,       // off the CPU
    kPreempted,  // off the CPU, although it could have run
  };
  Kind kind = Kind::kZone;
  // kZone: the innermost zone, "physics/solve"; "": in none. kWait: what for, without addresses and wakers, which
  // differ from frame to frame: "futex"; "": that is not known.
  std::string name;
  uint64_t ns = 0;        // of this frame
  uint64_t usual_ns = 0;  // the median over all frames of its kind
  // Where: of a zone the stack that most of its samples have; of a wait that of the longest one. ProfileStack::kRoot:
  // none is known.
  uint32_t stack = ProfileStack::kRoot;
  StackQuality quality = StackQuality::kNone;
  uint32_t wait = ProfileSample::kNoWait;  // kWait: the longest one, in Profile::waits
  // kZone: how many samples of a clock fell into the part, and how many of them have `stack`.
  uint32_t samples = 0, samples_of_stack = 0;

  // What it took more than usual; negative if less.
  int64_t excess_ns() const { return static_cast<int64_t>(ns) - static_cast<int64_t>(usual_ns); }
};

// A frame that took longer than usual.
struct SlowFrame {
  uint32_t zone = 0;      // the frame, in Profile::zones
  uint64_t ns = 0;        // its length: the sum of its parts' ns
  uint64_t usual_ns = 0;  // the median length of all frames of its kind
  // Also those that other frames usually have. Sorted by excess_ns(), the largest first.
  std::vector<FramePart> parts;
  // Medians do not add up: the sum of the parts' excesses and this is excess_ns().
  int64_t rest_ns = 0;

  int64_t excess_ns() const { return static_cast<int64_t>(ns) - static_cast<int64_t>(usual_ns); }
};

struct SlowFrameOptions {
  std::string name{};  // a pattern of fnmatch(3) for names without their number: "audio"; "": all
  size_t frames = 3;   // maximum number of frames
};

// Returns the frames with the largest excess_ns(), the largest first. Frames that took no longer than usual are left
// out; so are those from times whose zones are forgotten, or whose waits are merged. Zones and frames are those of
// SessionOptions::frames. What a thread does while its session is paused is told as running; so are the waits that
// Profile::Filtered has left out. Requires Profile::Check(). O((zones + samples) log) of the threads that have frames.
std::vector<SlowFrame> FindSlowFrames(const Profile& profile, const SlowFrameOptions& options = {});

// The same as text: for each frame its largest parts with their stacks, and the sum of the others. A profile that does
// not pass its check gives the error's text.
std::string FormatSlowFrames(const Profile& profile, const SlowFrameOptions& options = {});

}  // namespace perfkit
