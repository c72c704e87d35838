// Which frames a session keeps in full.
//
//   auto session = perfkit::Session::Start({.clock = perfkit::SessionClock::kWall,
//                                           .frames = &frames,
//                                           .keep = perfkit::KeepFrames{.on_slow_frame = Print}});
//
//   frames   |---|---|---|-----------|---|---|---|---|---|     all others are merged: their samples count in totals,
//                    before   slow         reference          and have no times
//
// So memory use stays constant however long the session runs. What is kept is in the profiles of Snapshot and Stop, and
// each slow frame is handed over as soon as it has ended.
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

// The frames of a kind are those of one frame sequence (FrameId) on one thread. A frame is kept if it took longer than
// its budget (FrameOptions::hitch_budget, FrameCounter::DefineFrame), if the program gave a reason for it
// (FrameCounter::Keep), or if it is among the worst of its kind. The samples, waits, zones and counters of all threads
// during the frame are kept with it.
struct KeepFrames {
  size_t worst = 16;  // Number of the longest frames of each kind that are kept.
  // Names of zones ("solve", or a path, "physics/solve") and of events of the FrameCounter ("page-faults"; a name that
  // is both means the event); 64 at most. For each name, also keeps the `worst` frames of each kind with the largest
  // value. The value of a zone is the time for which it was open on the frame's thread; that of an event is its count.
  // If values are equal, the earlier frame is kept; a frame whose value is 0 or unknown is not kept for it.
  // ProfileZone::worst_by says for which names a frame was kept; a note says for which names no frame had a value.
  std::vector<std::string> worst_by{};
  // Maximum number of kept frames of each kind. It never drops frames that `worst` or worst_by keeps, so there may be
  // more. Of the others, those without a reason are dropped first, the shortest first; then those with a reason, the
  // oldest first.
  // If SessionOptions::memory_bytes is exhausted, half of all kept frames are dropped, including those that `worst` or
  // worst_by keeps: those without a reason first, the shortest first. Half of the references are dropped, too.
  // ProfileAccounting::frames_dropped counts the frames that were dropped for max_frames or memory, not the references.
  size_t max_frames = 64;
  size_t before = 1;  // How many frames of its kind before each kept one are kept, too.
  // Number of frames of each kind that are chosen at random from the whole run. Slow frames are compared with them
  // (ProfileZone::is_reference). The samples and zones of their own thread are kept.
  size_t references = 64;
  // Called with each frame over its budget or with a reason, within some 20 ms of its end (with own_thread = false at
  // the next Poll), by the session's thread, or by the one that calls Poll, Snapshot or Stop. As
  // SessionOptions::on_batch: it must not call the session, should be brief, and is not called again once it has
  // thrown. If more than 64 slow frames end between two drains of the session, it gets 64 of them, because explaining
  // one takes about 1 ms: those with a reason come first, then the longest. It does not get frames that are not whole
  // (ProfileZone::is_whole). Notes count the frames that it did not get.
  SlowFrameCallback on_slow_frame{};
};

}  // namespace perfkit
