// Keeps the rings from becoming full while names are looked up: that may read a file for longer than a ring lasts.
//
//   looks up names       Open |---- reads a file, 100 ms ----| Close
//   "perfkit-rings"           keep keep keep ... (each millisecond)
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "src/sys/worker_thread.h"

namespace perfkit::session {

// Not thread-safe: one thread at a time calls it. Only tid() is. In a forked child it stays closed, and does nothing.
class RingKeeper {
 public:
  // `keep` empties the rings. It is called on the keeper's thread, and must not call the keeper.
  explicit RingKeeper(std::function<void()> keep);
  ~RingKeeper() { Stop(); }
  RingKeeper(const RingKeeper&) = delete;
  RingKeeper& operator=(const RingKeeper&) = delete;

  // Calls `keep` once a millisecond until Close. The first call starts the thread. Without a thread, because it can't
  // be started or after Stop, the keeper stays closed.
  void Open();
  // Waits for a call of `keep` that runs.
  void Close();
  // Ends the thread.
  void Stop();

  bool is_open() const { return is_open_; }
  // Of the thread; 0: it has not run yet.
  pid_t tid() const { return tid_; }
  // CPU time of the thread outside of `keep`, up to the last call of it.
  uint64_t cpu_ns() const { return cpu_ns_; }

 private:
  bool in_forked_child() const;
  void Work();

  const std::function<void()> keep_;
  const pid_t owner_pid_;
  std::mutex mutex_;  // guards changes of is_open_ and has_ended_, and calls of keep_
  std::condition_variable changed_;
  bool is_open_ = false;
  bool has_ended_ = false;
  bool has_thread_ = false;
  std::atomic<pid_t> tid_{0};
  std::atomic<uint64_t> cpu_ns_{0};
  sys::WorkerThread thread_;
};

// Opens a keeper, unless that is nullptr, for as long as this exists.
class KeptRings {
 public:
  explicit KeptRings(RingKeeper* keeper) : keeper_(keeper) {
    if (keeper_ != nullptr) keeper_->Open();
  }
  ~KeptRings() {
    if (keeper_ != nullptr) keeper_->Close();
  }
  KeptRings(const KeptRings&) = delete;
  KeptRings& operator=(const KeptRings&) = delete;

 private:
  RingKeeper* const keeper_;
};

}  // namespace perfkit::session
