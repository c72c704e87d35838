// How often zones, marks and threads could not be counted, for FrameStats.
//
// Statistics that only grow. Any thread adds to them; relaxed, because no other access depends on them.
#pragma once

#include <atomic>
#include <cstdint>

#include "perfkit/frame.h"

namespace perfkit::count {

// Thread-safe.
class MistakeCounts {
 public:
  // A mark on a thread that may not mark; a zone that was left on another thread than it was entered on, while
  // that one was attached; a zone in a signal handler that interrupted this thread's work; a thread without a slot.
  void AddForeignMark() noexcept { Add(foreign_marks_); }
  void AddCrossThread() noexcept { Add(cross_thread_); }
  void AddInterrupted() noexcept { Add(interrupted_); }
  void AddRefused() noexcept { Add(refused_); }

  void Fill(FrameStats& stats) const {
    stats.foreign_marks = foreign_marks_.load(std::memory_order_relaxed);
    stats.cross_thread = cross_thread_.load(std::memory_order_relaxed);
    stats.refused_threads = refused_.load(std::memory_order_relaxed);
  }
  uint64_t interrupted() const { return interrupted_.load(std::memory_order_relaxed); }

 private:
  template <class Number>
  static void Add(std::atomic<Number>& number) noexcept {
    number.fetch_add(1, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> foreign_marks_{0}, cross_thread_{0}, interrupted_{0};
  std::atomic<uint32_t> refused_{0};
};

}  // namespace perfkit::count
