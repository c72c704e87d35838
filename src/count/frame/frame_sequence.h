// A frame sequence other than the main one, e.g. of an audio thread: it has marks, frame numbers and a history of its
// own.
//
// The first thread that marks it owns it until that thread ends; marks of other threads are only counted as mistakes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "src/count/frame/frame_thread.h"
#include "src/count/frame/history.h"

namespace perfkit::count {

class FrameSequence {
 public:
  // `budget_ns`: 0 means none.
  FrameSequence(std::string name, const ZoneShape& shape, size_t history_frames, uint64_t budget_ns)
      : name_(std::move(name)), budget_ns_(budget_ns), shape_(shape), history_(history_frames) {}

  // Makes `thread` the owner if there is none. Returns false if another thread is. Call it on that thread, without
  // holding FrameThread::mutex, which it may lock.
  bool Claim(FrameThread& thread);
  // To be called when `thread` has ended. If it was the owner, the next thread that marks becomes the owner.
  // Thread-safe.
  void Disown(const FrameThread& thread);

  // A frame that has ended; its record is valid until the next Mark.
  struct Ended {
    uint64_t begin_ticks = 0;
    const FrameRecord* record = nullptr;
    uint32_t multiplexed = 0;  // ZoneTree::MultiplexedInLastFrame
  };
  // Ends a frame, and begins the next one. Requires that the owner's counters have been read into the scratch snapshot
  // of its tree. Returns nullopt if there was no frame to end: at the owner's first mark since its events were opened.
  // Call it on the owner, inside (FrameThread::StepInside), with its FrameThread::mutex held.
  std::optional<Ended> Mark(FrameThread& thread, uint64_t ns_per_tick_q32);

  // Thread-safe, as is all that follows. Nothing is counted in last() if no frame has ended. records(): oldest first.
  FrameRecord last() const;
  std::vector<FrameRecord> records() const;
  const std::string& name() const { return name_; }
  uint64_t budget_ns() const { return budget_ns_; }

 private:
  const std::string name_;
  const uint64_t budget_ns_;
  ZoneShape shape_;
  std::atomic<uint64_t> owner_{0};  // the owner's serial; 0: no owner
  // True: the owner's zones belong to frames of this sequence, and Mark ends frames of the owner's tree. False: Mark
  // ends frames of own_tree_.
  bool drives_tree_ = false;
  uint32_t opens_ = 0;                  // the owner's count of opens when this frame started
  std::unique_ptr<ZoneTree> own_tree_;  // only a root; used if not drives_tree_
  uint64_t number_ = 0;

  mutable std::mutex mutex_;  // guards history_
  History history_;
};

}  // namespace perfkit::count
