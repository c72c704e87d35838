// The cold half of a thread: opening, closing, frames' ends, zones that end on another thread.
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

void FrameThread::StepInside() noexcept {
  for (;;) {
    inside_.exchange(1, std::memory_order_seq_cst);               // pairs with TryVisit's load
    if (attention_.load(std::memory_order_seq_cst) == 0) return;  // pairs with TryVisit's stores
    inside_.store(0, std::memory_order_release);
    const std::lock_guard<std::mutex> wait(mutex);  // until the visitor has gone
  }
}

void FrameThread::Roll(uint64_t ns_per_tick_q32) {
  if (!dirty) return;
  dirty = false;
  tree.EndFrameAtScratch(frame, ns_per_tick_q32);
}

void FrameThread::NoteCrossThread(uint64_t entry) {
  const std::lock_guard<std::mutex> lock(cross_thread_mutex_);
  cross_thread_entries_.push_back(entry);
  watched_.fetch_or(kCrossThread, std::memory_order_relaxed);  // no order needed: the list has a lock of its own
}

void FrameThread::AbandonCrossThread() {
  if ((watched_.load(std::memory_order_relaxed) & kCrossThread) == 0) return;
  ZoneLog* const listening = log();
  const std::lock_guard<std::mutex> lock(cross_thread_mutex_);
  for (const uint64_t entry : cross_thread_entries_) {
    if (listening != nullptr) listening->Abandon(entry);
    tree.Abandon(entry);
  }
  cross_thread_entries_.clear();
  if (tree.PopAbandoned()) watched_.fetch_and(static_cast<uint8_t>(~kCrossThread), std::memory_order_relaxed);
}

std::shared_ptr<ZoneLog> FrameThread::StartLog(uint64_t epoch) {
  constexpr size_t kLogWords = size_t{1} << 17;  // 1 MiB: 32,000 zones between two reads
  if (log_ == nullptr) log_ = std::make_shared<ZoneLog>(tree, kLogWords);
  log_->Start(epoch);
  watched_.fetch_or(kRecorded, std::memory_order_release);  // pairs with log()
  return log_;
}

void FrameThread::StopLog() {
  watched_.fetch_and(static_cast<uint8_t>(~kRecorded), std::memory_order_relaxed);
  if (log_ != nullptr) log_->Start(0);
}

}  // namespace perfkit::count
