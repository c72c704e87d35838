// The slow paths of a watched thread: zones that ended on other threads, and its log.
#include "src/count/frame/thread_watch.h"

namespace perfkit::count {

void ThreadWatch::NoteCrossThread(uint64_t entry) {
  const std::lock_guard<std::mutex> lock(mutex_);
  entries_.push_back(entry);
  bits_.fetch_or(kCrossThread, std::memory_order_relaxed);  // no order needed: the list has a lock of its own
}

void ThreadWatch::AbandonCrossThread(ZoneTree& tree) {
  if ((bits_.load(std::memory_order_relaxed) & kCrossThread) == 0) return;
  ZoneLog* const listening = log();
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const uint64_t entry : entries_) {
    if (listening != nullptr) listening->Abandon(entry);
    tree.Abandon(entry);
  }
  entries_.clear();
  if (tree.PopAbandoned()) bits_.fetch_and(static_cast<uint8_t>(~kCrossThread), std::memory_order_relaxed);
}

std::shared_ptr<ZoneLog> ThreadWatch::StartLog(const ZoneTree& tree, uint64_t epoch) {
  constexpr size_t kLogWords = size_t{1} << 17;  // 1 MiB: 32,000 zones between two reads
  if (log_ == nullptr) log_ = std::make_shared<ZoneLog>(tree, kLogWords);
  log_->Start(epoch);
  bits_.fetch_or(kRecorded, std::memory_order_release);  // pairs with log()
  return log_;
}

void ThreadWatch::StopLog() {
  bits_.fetch_and(static_cast<uint8_t>(~kRecorded), std::memory_order_relaxed);
  if (log_ != nullptr) log_->Start(0);
}

}  // namespace perfkit::count
