// The frames of the marking thread by number.
//
// Frames get their numbers in the order in which they end. The history has those before the oldest that waits in the
// thread's tree (ZoneTree::EndFrame); Settle adds the ones that wait.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/count/frame/history.h"
#include "src/count/frame/zone_tree.h"

namespace perfkit::count {

// Not thread-safe, apart from under_way(): only the marking thread may use it.
class MainFrames {
 public:
  explicit MainFrames(size_t history_frames) : history_(history_frames) {}

  // Number of frames that have ended, and so the number of the frame under way.
  uint64_t ended() const { return next_; }
  // To be called when the frame under way has ended in the tree.
  void End() { under_way_.store(++next_, std::memory_order_relaxed); }
  // As ended(), on any thread. Relaxed: a worker that sees it late adds a part of the new frame to the last one.
  uint64_t under_way() const { return under_way_.load(std::memory_order_relaxed); }

  void Settle(ZoneTree& tree, uint64_t ns_per_tick_q32) {
    for (size_t waiting = tree.pending(); waiting != 0; --waiting) {
      FrameRecord& record = history_.next();
      record.number = next_ - waiting;
      tree.Settle(ns_per_tick_q32, record);
      history_.Push();
    }
  }
  const History& history() const { return history_; }
  void Clear() { history_.Clear(); }

 private:
  History history_;
  uint64_t next_ = 0;
  std::atomic<uint64_t> under_way_{0};
};

}  // namespace perfkit::count
