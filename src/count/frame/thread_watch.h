// What the zones and marks of a thread have to look after besides counting: zones that were left on other threads, and
// a recording that listens.
//
// One word says whether there is anything, so that the fast ways look once. Its bit for left zones stays set until none
// of them is on the stack any more.
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

  // A zone of the thread was left on another one. Thread-safe.
  void NoteCrossThread(uint64_t entry);
  // On the owner: takes such zones out of its stack, as far as no open child keeps them there.
  void AbandonCrossThread(ZoneTree& tree);

  // A recording listens, or no longer. Any thread, with the list of threads locked; the first time takes memory that is
  // kept until the thread ends.
  std::shared_ptr<ZoneLog> StartLog(const ZoneTree& tree, uint64_t epoch);
  void StopLog();
  // On the owner; nullptr if no recording listens.
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
