// A TaskCounter: its threads, its accounts, and the sums of ended tasks.
//
//   Resume, Suspend, Switch, zones ──> TaskThread of the calling thread            no lock
//   the end of a task ──> EndedTasks of its name, and the list of free accounts    no lock
//   Attach, Create, recordings, what is read                                       under a mutex
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/task_counter.h"
#include "src/count/frame/event_plan.h"
#include "src/count/frame/thread_binding.h"
#include "src/count/task/await_chains.h"
#include "src/count/task/ended_tasks.h"
#include "src/count/task/task_nodes.h"
#include "src/count/task/task_recording.h"
#include "src/count/task/task_thread.h"
#include "src/sys/fork_registry.h"

namespace perfkit::count {

class TaskCounterImpl : public Bindable, public std::enable_shared_from_this<TaskCounterImpl> {
 public:
  explicit TaskCounterImpl(const TaskOptions& options);

  // Thread-safe, but one thread at a time for each account.
  void Resume(TaskAccount& account) noexcept;
  void Suspend(TaskAccount& account) noexcept;
  void Switch(TaskAccount& from, TaskAccount& to) noexcept;
  TaskAccount* EnterZone(ZoneId id) noexcept;
  void LeaveZone(TaskAccount& account) noexcept;
  void End(TaskAccount& account) noexcept;
  void SetAwaiter(TaskAccount& account, const TaskAccount* awaiter) noexcept;

  // Returns the account of a new task; nullptr in a forked child.
  TaskAccount* Create(ZoneId name);
  // Returns the calling thread, attached if that is possible; nullptr if it was refused.
  [[gnu::noinline]] TaskThread* Attach();
  // Closes the events of all threads. No call follows, except for threads that end.
  void Close();

  // Returns a recording of the switches of all threads from now on. Ends an earlier recording. Any thread.
  // Errors: FailedPrecondition in a forked child, once the TaskCounter is destroyed, or without a tick counter.
  absl::StatusOr<std::unique_ptr<TaskRecording>> Record();
  void EndRecording(const TaskRecording& recording);
  static std::shared_ptr<TaskCounterImpl> Of(const TaskCounter& tasks) { return tasks.impl_; }
  // As TaskRecording::PathOf.
  std::string PathOf(const TaskPosition& position) const;
  // Returns the name of the task that a node is in.
  std::string TaskOf(uint16_t node) const;
  // Returns the serial numbers of the attached threads that are in no task now.
  std::vector<uint64_t> ThreadsOutside() const;
  // Returns those of the threads whose task another thread has suspended or ended, and that have not switched since.
  std::vector<uint64_t> ThreadsInLostTasks() const;
  uint32_t refused_threads() const { return tally_.refused.load(std::memory_order_relaxed); }

  const EventPlan& plan() const { return plan_; }
  bool in_forked_child() const { return in_forked_child_; }
  std::vector<TaskZoneStats> Zones() const;
  TaskTotals Outside() const;
  TaskTotals TotalsOf(const TaskAccount& account) const;
  TaskStats Stats() const;

 private:
  // Returns true if the task is open on the calling thread, and another one is innermost.
  bool IsInterrupted(TaskAccount& account) noexcept;
  // Numbers for TaskStats, which only grow. All accesses are relaxed, because nothing depends on their order.
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
  [[gnu::noinline]] TaskThread* SettleSuspend(TaskThread* thread, TaskAccount& account) noexcept;
  void NoteCrossThread(TaskAccount& account) noexcept;
  TaskAccount* TakeAccount();
  EndedTasks* EndedOf(uint16_t root);
  std::string PathOfNode(uint16_t node) const;
  // Returns the sums of one node over all threads. With the mutex held.
  NodeTotal TotalOf(size_t node) const;
  Validity LackingIn(uint16_t root) const;
  // Returns the node of the name of the tasks that a node is in. Requires node != TaskNodes::kOutside.
  uint16_t RootOf(uint16_t node) const;
  TaskZoneStats StatsOf(const std::vector<NodeTotal>& totals, size_t node) const;
  void AppendBelow(const std::vector<NodeTotal>& totals, size_t node, size_t parent, uint32_t depth,
                   std::vector<TaskZoneStats>& out) const;
  Count CountOf(const Sums& sums, size_t i) const;
  uint64_t ToNs(uint64_t ticks) const;
  std::vector<uint64_t> ThreadsThat(bool (TaskThread::*is_so)() noexcept) const;
  // Locks the mutex, except in a forked child.
  std::unique_lock<std::mutex> Lock() const;
  void OnForkedChild();

  EventPlan plan_;
  size_t max_threads_;
  uint64_t ns_per_tick_q32_;
  TaskNodes nodes_;
  AwaitChains chains_;
  uint16_t other_names_;
  SharedRowPool rows_;
  Tally tally_;
  std::vector<std::unique_ptr<EndedTasks>> ended_;  // By node; of names of tasks.

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<TaskThread>> threads_;  // Changes under a ForkBlocker: a child destroys its copy.
  std::atomic<size_t> attached_{0};     // Number of `threads_`, read without the mutex by threads that were refused.
  TaskRecording* recording_ = nullptr;  // Until its EndRecording.
  std::unique_ptr<NodeSums> ended_threads_;
  std::deque<TaskAccount> accounts_;
  TaskAccount* free_ = nullptr;                  // List of accounts in `accounts_` that no task uses.
  std::atomic<TaskAccount*> returned_{nullptr};  // List of those that ended since `free_` was filled last.
  bool in_forked_child_ = false;                 // Another thread of the parent may hold the mutex.
  sys::ForkListener fork_listener_{[](void* impl) { static_cast<TaskCounterImpl*>(impl)->OnForkedChild(); },
                                   this};  // Declared last: unregistered before anything else is destroyed.
};

}  // namespace perfkit::count
