// Marks of frame sequences other than the main one. A worker's zones belong to the first sequence that the worker
// marks: that sequence's marks, instead of the main ones, end the frames of the worker's tree. Every other sequence has
// its own tree, which is only a root, so its frames have counts but no zones.
#include "src/count/frame/frame_sequence.h"

namespace perfkit::count {

bool FrameSequence::Claim(FrameThread& thread) {
  uint64_t owner = 0;
  // Acquire: pairs with the release in Disown, so that the new owner sees what the last one wrote.
  if (!owner_.compare_exchange_strong(owner, thread.serial, std::memory_order_acquire)) return owner == thread.serial;
  opens_ = 0;
  drives_tree_ = thread.is_worker && !thread.own_frames;
  if (drives_tree_) {
    const std::lock_guard<std::mutex> lock(thread.mutex);  // reports read it
    thread.own_frames = true;
  } else if (own_tree_ == nullptr) {
    ZoneShape root_only = shape_;
    root_only.max_zones = 0;
    root_only.max_depth = 0;
    root_only.spare_bytes = 0;
    own_tree_ = std::make_unique<ZoneTree>(root_only);
  }
  return true;
}

void FrameSequence::Disown(const FrameThread& thread) {
  uint64_t owner = thread.serial;
  owner_.compare_exchange_strong(owner, 0, std::memory_order_release);  // pairs with Claim
}

std::optional<FrameSequence::Ended> FrameSequence::Mark(FrameThread& thread, uint64_t ns_per_tick_q32) {
  ZoneTree& tree = drives_tree_ ? thread.tree : *own_tree_;
  if (&tree != &thread.tree) tree.scratch() = thread.tree.scratch();
  // The owner's events were reopened, or this is its first mark: no frame has begun with these events.
  if (opens_ != thread.opens) {
    opens_ = thread.opens;
    tree.SetGapped(thread.tree.gapped());
    // What the owner's zones counted before its first mark belongs to no frame of this sequence.
    if (drives_tree_) tree.EndFrameAtScratch(number_, ns_per_tick_q32);
    tree.BeginFrameAtScratch();
    return std::nullopt;
  }
  const uint64_t begin_ticks = tree.frame_begin_ticks();
  const FrameRecord& record = tree.EndFrameAtScratch(number_++, ns_per_tick_q32);
  const std::lock_guard<std::mutex> lock(mutex_);
  history_.next() = record;
  history_.Push();
  return Ended{begin_ticks, &record, tree.MultiplexedInLastFrame()};
}

FrameRecord FrameSequence::last() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return history_.last();
}

std::vector<FrameRecord> FrameSequence::records() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const FrameHistory view = history_.view();
  std::vector<FrameRecord> copy;
  for (size_t i = 0; i < view.size(); ++i) copy.push_back(view[i]);
  return copy;
}

}  // namespace perfkit::count
