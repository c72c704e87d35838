// Texts that the program gives to frames which are not finished: why to keep them (FrameCounter::Keep), and what state
// it was in (FrameCounter::AttachState). A frame's own thread writes its texts into the log before the frame, so its
// place in the log tells which frame a text belongs to; those of other threads are told by time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/count/frame/frame_recording.h"

namespace perfkit::session {

// Where a frame keeps its texts.
struct FrameTextTarget {
  uint32_t thread = 0;  // as FrameTexts::Add
  uint16_t sequence = 0;
  uint64_t from_ns = 0, to_ns = 0;
  std::string& reason;
  std::string& state;
};

// Not thread-safe.
class FrameTexts {
 public:
  static constexpr size_t kMaxWaiting = 1024;
  static constexpr size_t kMaxStateBytes = 1024;  // of a frame: what is beyond is left out, and the text says so

  // Adds a kReason or kState of a thread, an index of the caller's. A frame that is never marked has no end, so its
  // texts would wait for ever: beyond kMaxWaiting the oldest are dropped.
  void Add(uint32_t thread, const count::FrameEvent& event);
  // Moves the texts of the frame's own thread to the frame. To be called for each frame, when it is read from the log.
  void TakeOwn(const FrameTextTarget& frame);
  // Moves the texts of other threads to the frame. To be called when all logs were read to its end, in the order of the
  // sequence's frames.
  void TakeOthers(const FrameTextTarget& frame);
  bool empty() const { return waiting_.empty(); }

 private:
  struct Waiting {
    uint64_t ns = 0;
    uint32_t thread = 0;
    uint16_t sequence = 0;
    bool is_state = false;
    std::string text;
  };

  static void Append(const Waiting& text, const FrameTextTarget& frame);

  std::vector<Waiting> waiting_;
};

}  // namespace perfkit::session
