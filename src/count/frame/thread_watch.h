// What the zones and marks of a thread have to handle besides counting: zones that ended on other threads, and a
// recording that listens.
//
// One word says whether there is any of it, so the fast path loads one word. Its bit kCrossThread stays set until no
// such zone is on the stack any more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "src/count/frame/zone_log.h"
#include "src/count/frame/zone_tree.h"

namespace perfkit::count {

class ThreadWatch {
 public:
  bool any() const { return bits_.load(std::memory_order_relaxed) != 0; }

  // Notes that a zone of this thread ended on another one. Thread-safe.
  void NoteCrossThread(uint64_t entry);
  // On the owner: removes such zones from its stack, except those below open children.
  void AbandonCrossThread(ZoneTree& tree);

  // Start and stop logging for a recording. Call them on any thread, with the list of threads locked. The first
  // StartLog allocates the log, which is kept until the thread ends.
  std::shared_ptr<ZoneLog> StartLog(const ZoneTree& tree, uint64_t epoch);
  void StopLog();
  // On the owner: returns nullptr if no recording listens.
  ZoneLog* log() const {
    // Acquire: pairs with the release in StartLog.
    return (bits_.load(std::memory_order_acquire) & kRecorded) != 0 ? log_.get() : nullptr;
  }

 private:
  static constexpr uint8_t kCrossThread = 1, kRecorded = 2;

  std::atomic<uint8_t> bits_{0};
  std::shared_ptr<ZoneLog> log_;  // set once
  std::mutex mutex_;              // guards entries_
  std::vector<uint64_t> entries_;
};

}  // namespace perfkit::count
