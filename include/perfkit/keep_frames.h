// Which frames a session keeps in full.
//
//   auto session = perfkit::Session::Start({.clock = perfkit::SessionClock::kWall,
//                                           .frames = &frames,
//                                           .keep = perfkit::KeepFrames{.on_slow_frame = Print}});
//
//   frames   |---|---|---|-----------|---|---|---|---|---|     all others are merged: their samples count in totals,
//                    before   slow         reference          and have no times
//
// So a session can run for hours in the same memory. What is kept is in the profiles of Snapshot and Stop, and each
// slow frame is handed over as soon as it has ended.
#pragma once

#include "perfkit/detail/library_only.h"

#include <cstddef>
#include <string>
#include <vector>

#include "perfkit/profile.h"
#include "perfkit/session_callback.h"
#include "perfkit/slow_frames.h"

namespace perfkit {

// A slow frame that has ended. Valid until the callback returns.
struct ExplainedFrame {
  // The samples, zones and counters of the frame, of the frames before it, and of the references of its kind, without
  // accounting. WriteSlowFrame (profile_writer.h) writes the frame as a file; it takes some milliseconds of the
  // session's thread.
  const Profile& profile;
  const SlowFrame& frame;  // Its indexes are those of `profile`. FormatSlowFrame(profile, frame) is its text.
};

using SlowFrameCallback = SessionCallback<ExplainedFrame>;

// Frames of a kind are those of one thread and one FrameId. A frame is kept if it took longer than its budget
// (FrameOptions::hitch_budget, FrameCounter::DefineFrame), if the program gave a reason (FrameCounter::Keep), or if it
// is among the worst of its kind. With it stay the samples, waits, zones and counters of all threads in its time.
struct KeepFrames {
  size_t worst = 16;  // The longest frames of each kind.
  // Names of zones ("solve", or a path, "physics/solve") and of events of the FrameCounter ("page-faults"; a name that
  // is both means the event); 64 at most. For each name, the `worst` frames of each kind in which it has the largest
  // number are kept, too, besides the longest ones: the time for which such a zone was open on the frame's own thread,
  // or the frame's count. Of equal numbers the earlier frame is kept; a frame whose number is 0 or unknown is not kept
  // for it. ProfileZone::worst_by says which names a frame was kept for; a note says which names no frame had.
  std::vector<std::string> worst_by{};
  // Maximum number of kept frames of each kind, or the number of the worst if that is more: `worst` for the length, and
  // for each name. Beyond it, frames that are not among the worst are dropped: first those without a reason, the
  // shortest first; then those with a reason, the oldest first. ProfileAccounting::frames_dropped counts them, and
  // frames that memory_bytes has no room for. The shortest frames without a reason go first there, too.
  size_t max_frames = 64;
  size_t before = 1;  // How many frames of its kind before each kept one are kept, too.
  // Number of frames of each kind that are chosen at random from the whole run. Slow frames are compared with them
  // (ProfileZone::is_reference). The samples and zones of their own thread are kept.
  size_t references = 64;
  // Called with each frame over its budget or with a reason, within some 20 ms of its end (with own_thread = false at
  // the next Poll), by the session's thread, or by the one that calls Poll, Snapshot or Stop. As
  // SessionOptions::on_batch: it must not call the session, should be brief, and is not called again once it has
  // thrown. If more than 64 slow frames end between two rounds, it gets 64 of them, because explaining one takes about
  // 1 ms: those with a reason come first, then the longest. It does not get frames that are not whole
  // (ProfileZone::is_whole). Notes count the frames that it did not get.
  SlowFrameCallback on_slow_frame{};
};

}  // namespace perfkit
