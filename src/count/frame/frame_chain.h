// A chain of frames beside the main one: its own marks, numbers and history, on whichever thread marks it.
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

class FrameChain {
 public:
  // `budget_ns`: 0 means none.
  FrameChain(std::string name, const ZoneShape& shape, size_t history_frames, uint64_t budget_ns)
      : name_(std::move(name)), budget_ns_(budget_ns), shape_(shape), history_(history_frames) {}

  // Makes `thread` the owner if there is none. False when there is another. On the owner, without its mutex.
  bool Claim(FrameThread& thread);
  // The owner has ended: the next thread that marks takes over.
  void Disown(const FrameThread& thread);

  // A frame that has ended; its record is valid until the next Mark.
  struct Ended {
    uint64_t begin_ticks = 0;
    const FrameRecord* record = nullptr;
    uint32_t multiplexed = 0;  // ZoneTree::MultiplexedInLastFrame
  };
  // Ends a frame of the owner, whose counters are read into its tree's scratch. Returns nullopt where it only
  // starts one: at the owner's first mark since its events were opened.
  // On the owner, inside, with its mutex held.
  std::optional<Ended> Mark(FrameThread& thread, uint64_t ns_per_tick_q32);

  // Any thread.
  FrameRecord last() const;
  std::vector<FrameRecord> records() const;
  const std::string& name() const { return name_; }
  uint64_t budget_ns() const { return budget_ns_; }

 private:
  const std::string name_;
  const uint64_t budget_ns_;
  ZoneShape shape_;
  std::atomic<uint64_t> owner_{0};      // the owner's serial; 0: no owner
  bool drives_tree_ = false;            // the frames of the owner's zones are these
  uint32_t opens_ = 0;                  // the owner's count of opens when this frame started
  std::unique_ptr<ZoneTree> own_tree_;  // a root without zones, where the owner's tree follows other frames
  uint64_t number_ = 0;

  mutable std::mutex mutex_;  // guards history_
  History history_;
};

}  // namespace perfkit::count
