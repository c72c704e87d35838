// Notes about what callbacks did not get.
#include "src/session/given_batches.h"

#include "absl/strings/str_format.h"

namespace perfkit::session {

void GivenBatches::AddNotes(bool is_asked, std::vector<std::string>& notes) const {
  if (threw) {
    notes.push_back(absl::StrFormat("on_batch threw an exception in batch %d, and was not called again", batches));
  }
  if (slow_frame_threw) {
    notes.push_back(
        absl::StrFormat("on_slow_frame threw an exception at its frame %d, and was not called again", slow_frames));
  }
  if (slow_frames_withheld != 0 && is_asked) {
    notes.push_back(
        absl::StrFormat("%d slow frames were not given to on_slow_frame: they ended faster than they can be "
                        "explained",
                        slow_frames_withheld));
  }
  if (slow_frames_in_part != 0) {
    notes.push_back(
        absl::StrFormat("%d slow frames were not given to on_slow_frame: not all of their zones and waits "
                        "were kept (SessionOptions::memory_bytes), or the session was paused",
                        slow_frames_in_part));
  }
  if (slow_frames_begun_before != 0) {
    notes.push_back(absl::StrFormat("%d slow frames were not given to on_slow_frame: they began before the session",
                                    slow_frames_begun_before));
  }
}

}  // namespace perfkit::session
