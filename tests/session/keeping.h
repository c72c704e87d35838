// Sessions that keep slow frames, for tests.
#pragma once

#include <utility>

#include "perfkit/frame_counter.h"
#include "perfkit/session.h"

namespace perfkit::session {

inline SessionOptions Keeping(const FrameCounter& frames, KeepFrames keep, size_t memory_bytes = 64 << 20) {
  return {.clock = SessionClock::kWall,
          .stacks = SessionStacks::kNone,
          .memory_bytes = memory_bytes,
          .frames = &frames,
          .keep = std::move(keep)};
}

}  // namespace perfkit::session
