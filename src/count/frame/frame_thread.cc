// The cold half of FrameThread: opening and closing of events, ends of frames. Each thread opens its own events,
// because a CounterSet counts the thread that opens it.
#include "src/count/frame/frame_thread.h"

#include <utility>

namespace perfkit::count {

void FrameThread::Open(std::optional<CounterSet> opened) {
  set_.reset();
  if (opened) set_.emplace(*std::move(opened));
  reader = set_ ? static_cast<const CounterReader&>(*set_) : CounterReader();
  open_ = true;
  ++opens;
  tree.SetGapped(reader.gapped());
  // The new events need not begin at 0: the tree and the slot add differences from this snapshot on.
  Snapshot& now = tree.scratch();
  Read(now);
  tree.BeginFrameAtScratch();
  slot.StartAt(now);
}

void FrameThread::Close() {
  reader = {};
  set_.reset();
  open_ = false;
}

void FrameThread::CloseOutside(uint64_t ns_per_tick_q32) {
  if (own_frames) {
    tree.DropFrame();
  } else {
    Roll(ns_per_tick_q32);
  }
  Close();
}

void FrameThread::StepInside() noexcept {
  for (;;) {
    inside_.exchange(1, std::memory_order_seq_cst);               // pairs with TryVisit's load
    if (attention_.load(std::memory_order_seq_cst) == 0) return;  // pairs with TryVisit's stores
    inside_.store(0, std::memory_order_release);
    const std::lock_guard<std::mutex> wait(mutex);  // until the visitor has finished
  }
}

void FrameThread::Roll(uint64_t ns_per_tick_q32) {
  if (!dirty) return;
  dirty = false;
  tree.EndFrameAtScratch(frame, ns_per_tick_q32);
}

}  // namespace perfkit::count
