// A TaskCounter: its threads, its accounts, and what ended tasks leave.
//
//   Resume, Suspend, Switch, zones ──> TaskThread of the calling thread            no lock
//   the end of a task ──> EndedTasks of its name, and the list of free accounts    no lock
//   Attach, Create, what is read                                                   under a mutex
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "perfkit/task_counter.h"
#include "src/count/frame/event_plan.h"
#include "src/count/frame/thread_binding.h"
#include "src/count/task/ended_tasks.h"
#include "src/count/task/task_nodes.h"
#include "src/count/task/task_thread.h"
#include "src/sys/fork_registry.h"

namespace perfkit::count {

class TaskCounterImpl : public Bindable, public std::enable_shared_from_this<TaskCounterImpl> {
 public:
  explicit TaskCounterImpl(const TaskOptions& options);

  // On any thread; an account is used by one thread at a time.
  void Resume(TaskAccount& account) noexcept;
  void Suspend(TaskAccount& account) noexcept;
  void Switch(TaskAccount& from, TaskAccount& to) noexcept;
  TaskAccount* EnterZone(ZoneId id) noexcept;
  void LeaveZone(TaskAccount& account) noexcept;
  void End(TaskAccount& account) noexcept;

  TaskAccount* Create(ZoneId name);
  // Returns the calling thread, attached if that is possible; nullptr if it was refused.
  TaskThread* Attach();
  // Closes the events of all threads. The last call, but for the ends of threads.
  void Close();

  const EventPlan& plan() const { return plan_; }
  bool in_forked_child() const { return in_forked_child_; }
  std::vector<TaskZoneStats> Zones() const;
  TaskTotals Outside() const;
  TaskTotals TotalsOf(const TaskAccount& account) const;
  TaskStats Stats() const;

 private:
  // Numbers for people, which only grow: any thread adds to them, and they are ordered with nothing.
  struct Tally {
    std::atomic<uint64_t> created{0}, ended{0}, cross_thread{0}, mismatched{0}, dropped{0};
    std::atomic<uint32_t> refused{0};
  };
  template <class Number>
  static void AddOne(std::atomic<Number>& number) noexcept {
    number.fetch_add(1, std::memory_order_relaxed);
  }

  CountedEvents CountedPlan() const { return {plan_.size(), plan_.multiplexable(), plan_.never()}; }
  TaskThread* FindThread() noexcept { return static_cast<TaskThread*>(FindBinding(this)); }
  TaskThread* Refuse();
  void EndThread(void* thread);
  void ResumeOn(TaskThread* thread, TaskAccount& account) noexcept;
  TaskThread* ThreadToSuspendOn(TaskAccount& account) noexcept;
  TaskThread* SettleSuspend(TaskThread* thread, TaskAccount& account) noexcept;
  void NoteCrossThread(TaskAccount& account) noexcept;
  TaskAccount* TakeAccount();
  EndedTasks* EndedOf(uint16_t root);
  // A copy of the sums of all nodes, over all threads. With the mutex held.
  struct NodeTotal {
    Sums sums;
    uint64_t wait_ticks = 0;
  };
  NodeTotal TotalOf(size_t node) const;
  TaskZoneStats StatsOf(const std::vector<NodeTotal>& totals, size_t node) const;
  void AppendBelow(const std::vector<NodeTotal>& totals, size_t node, size_t parent, uint32_t depth,
                   std::vector<TaskZoneStats>& out) const;
  Count CountOf(const Sums& sums, size_t i) const;
  uint64_t ToNs(uint64_t ticks) const;
  std::unique_lock<std::mutex> Lock() const;

  EventPlan plan_;
  size_t max_threads_;
  uint64_t ns_per_tick_q32_;
  TaskNodes nodes_;
  uint16_t other_names_;
  SharedRowPool rows_;
  Tally tally_;
  std::vector<std::unique_ptr<EndedTasks>> ended_;  // By node; of names of tasks.

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<TaskThread>> threads_;  // Changes under a ForkBlocker: a child destroys its copy.
  std::atomic<size_t> attached_{0};                   // Their number: a hint for those that were refused.
  std::unique_ptr<NodeSums> ended_threads_;
  std::deque<TaskAccount> accounts_;
  TaskAccount* free_ = nullptr;                  // Of `accounts_`.
  std::atomic<TaskAccount*> returned_{nullptr};  // Those that ended since then.
  bool in_forked_child_ = false;                 // The mutex may be held by a thread that is not here.
  sys::ForkListener fork_listener_{[](void* impl) { static_cast<TaskCounterImpl*>(impl)->in_forked_child_ = true; },
                                   this};  // Last.
};

}  // namespace perfkit::count
