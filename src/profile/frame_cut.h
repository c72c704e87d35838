// The part of a profile that shows one frame: what the file of a slow frame is made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "perfkit/profile.h"
#include "perfkit/slow_frames.h"
#include "src/profile/frame_parts.h"

namespace perfkit::profile {

// What a thread did: for `ns` it was in one part.
struct FrameSpan {
  static constexpr uint32_t kUnknown = UINT32_MAX;
  uint32_t part = kUnknown;                  // In FrameCut::names; kUnknown before its first entry and after its last.
  uint32_t sample = ThreadParts::kNoSample;  // Of a wait, in Profile::samples.
  uint64_t ns = 0;
};

// Movable, not copyable.
struct FrameCut {
  struct Time {
    uint64_t from_ns = 0, to_ns = 0;
  };

  // What threads did from `from_ns` to the frame's end, the references' samples on the frame's thread, and no table
  // entry that nothing refers to. Its from_ns and to_ns are the frame's. Waits and zones that reach into the time are
  // whole.
  Profile profile;
  SlowFrame frame;       // By the indexes of `profile`.
  uint64_t from_ns = 0;  // Begin of the first of the frames before it, or the frame's.
  std::string text;      // FormatSlowFrame.
  size_t compared = 0;   // Number of frames that it is compared with; `references` has some of them, in order of time.
  std::vector<Time> references;
  size_t silent_threads = 0;  // Threads that left no entry in this time, and are not in `profile`.
  // By thread: what it did from `from_ns` to the frame's end, without gaps. Spans are split at the frame's begin, and
  // those of the frame's thread in the frame add up to its parts.
  std::vector<std::vector<FrameSpan>> spans;
  PartNames names;
};

// Returns OK if the indexes of `frame` are in their ranges. Errors: InvalidArgument with the first wrong one.
absl::Status CheckFrame(const Profile& profile, const SlowFrame& frame);

enum class References { kTake, kLeave };
// Requires Profile::Check() and CheckFrame().
FrameCut CutFrame(const Profile& profile, const SlowFrame& frame, References references);

}  // namespace perfkit::profile
