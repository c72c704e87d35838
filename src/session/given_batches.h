// What a session has passed to the callbacks of its options.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace perfkit::session {

struct GivenBatches {
  size_t samples = 0;  // the first ones of the profile
  uint64_t batches = 0;
  bool threw = false;
  uint64_t slow_frames = 0;
  uint64_t slow_frames_withheld = 0;
  uint64_t slow_frames_in_part = 0;       // not passed, because some of their zones or waits were dropped
  uint64_t slow_frames_begun_before = 0;  // not passed, because they began before the session
  bool slow_frame_threw = false;

  // Adds what the callbacks did not get, and why. `is_asked`: KeepFrames::on_slow_frame is set.
  void AddNotes(bool is_asked, std::vector<std::string>& notes) const;
};

}  // namespace perfkit::session
