// What one task has counted, and on which thread it is open.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/count/frame/counted_events.h"
#include "src/count/task/await_chains.h"

namespace perfkit::count {

class TaskCounterImpl;
class TaskThread;
struct EndedTasks;

// Changed by the thread that uses the task: one at a time, by the program's scheduler. The members that detect a use by
// two threads at once are atomic. Aligned, so that tasks on different threads share no cache line.
struct alignas(64) TaskAccount {
  explicit TaskAccount(TaskCounterImpl& owner) : impl(&owner) {}

  // Makes it the account of a new task. Requires that it is not open.
  void Begin(uint16_t name, uint64_t which, EndedTasks* distributions) {
    number = which;
    ended = distributions;
    open_uncounted = false;
    root = node = name;
    awaiters.store(AwaitChains::kNone, std::memory_order_relaxed);
    skipped = 0;
    below = nullptr;
    last_thread = migrations = suspended_ticks = wait_ticks = 0;
    sums = {};
  }
  bool is_open() const { return thread.load(std::memory_order_relaxed) != nullptr || open_uncounted; }

  TaskCounterImpl* impl;
  EndedTasks* ended = nullptr;  // Those of its name.
  uint64_t number = 0;          // The task's number, from 1 on; not used again.
  TaskAccount* next_free = nullptr;
  // The thread on which it is open, or nullptr. Relaxed: the threads that use it correctly are ordered by the
  // scheduler.
  std::atomic<TaskThread*> thread{nullptr};
  // It was suspended or ended by another thread than `thread`, which drops it at its next switch. Relaxed: as above.
  std::atomic<bool> cross_thread{false};
  bool open_uncounted = false;  // It runs on a thread that was refused.
  uint16_t root = 0, node = 0;  // The node of its name; that of its innermost zone.
  // Chain of the tasks that await it (AwaitChains). Relaxed: any thread may set it, the next switch of the task reads
  // it.
  std::atomic<uint16_t> awaiters{AwaitChains::kNone};
  uint32_t skipped = 0;          // Dropped zones that are open: all are inside `node`.
  TaskAccount* below = nullptr;  // The account that it interrupts on its thread.
  uint64_t last_thread = 0;      // The serial number of the thread that it ran on last; 0: none.
  uint64_t migrations = 0;
  uint64_t suspended_ticks = 0;  // Time at which it was suspended last, or enqueued; 0: neither.
  uint64_t wait_ticks = 0;
  Sums sums;  // calls: how often it was resumed.
};

}  // namespace perfkit::count
