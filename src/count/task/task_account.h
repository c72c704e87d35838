// What one task has counted, and where it is now.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/count/frame/counted_events.h"

namespace perfkit::count {

class TaskCounterImpl;
class TaskThread;
struct EndedTasks;

// Changed by the thread that uses the task, which the program's scheduler decides. Only what tells a wrong use is
// atomic. Aligned, so that tasks on different threads share no cache line.
struct alignas(64) TaskAccount {
  explicit TaskAccount(TaskCounterImpl& owner) : impl(&owner) {}

  // Makes it the account of a new task. Requires that it is not open.
  void Begin(uint16_t name, EndedTasks* distributions) {
    ended = distributions;
    open_uncounted = false;
    root = node = name;
    skipped = 0;
    below = nullptr;
    last_thread = migrations = suspended_ticks = wait_ticks = 0;
    sums = {};
  }
  bool is_open() const { return thread.load(std::memory_order_relaxed) != nullptr || open_uncounted; }

  TaskCounterImpl* impl;
  EndedTasks* ended = nullptr;  // Of its name.
  TaskAccount* next_free = nullptr;
  // The thread on which it is open, or nullptr. Relaxed: the threads that use it correctly are ordered by the
  // scheduler.
  std::atomic<TaskThread*> thread{nullptr};
  // Suspended or ended by another thread: its thread takes it off its stack at the next switch. Relaxed: as above.
  std::atomic<bool> cross_thread{false};
  bool open_uncounted = false;   // It runs on a thread that was refused.
  uint16_t root = 0, node = 0;   // The node of its name; that of its innermost zone.
  uint32_t skipped = 0;          // Dropped zones that are open, all of them above `node`.
  TaskAccount* below = nullptr;  // The account that it interrupts on its thread.
  uint64_t last_thread = 0;      // The serial number of the thread that it ran on last; 0: none.
  uint64_t migrations = 0;
  uint64_t suspended_ticks = 0;  // When it was suspended last.
  uint64_t wait_ticks = 0;
  Sums sums;  // calls: how often it was resumed.
};

}  // namespace perfkit::count
