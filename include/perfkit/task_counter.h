// Counts tasks: jobs, fibers and coroutines, which stop in the middle and continue on any thread.
//
//   perfkit::TaskCounter tasks({.events = {"task-clock", "page-faults"}});
//   perfkit::TaskCounter::Task task = tasks.Create({"pathfinding"});   // beside each job, fiber or coroutine
//   scheduler:   task.Resume();  SwitchTo(fiber);  task.Suspend();     // on any thread
//   in the job:  PERFKIT_TASK_ZONE(tasks, "expand");                   // stays open while the task is suspended
//   fputs(tasks.FormatTasks().c_str(), stdout);            // or zones(), the same as data
//
// While a task runs, its thread's counts are added to it. Each part is the difference of two snapshots of one thread's
// events, so a task that migrates has exact counts. Each switch reads the counters once, for both tasks. So the counts
// of all tasks and those outside of tasks add up exactly to those of the threads.
//
// With task-clock, page-faults, context-switches and cpu-migrations, Resume, Suspend and zones usually make no system
// call: task-clock needs one after each context switch, and every 20 ms. path() says how each event is read. They never
// lock or allocate, except the first on each thread, which opens its events, and the first entry of each zone. A
// TaskCounter never fails: an event that can't be counted has a reason instead of counts. Adapters: task_coroutine.h
// (C++20), task_job.h (queues of functions), task_tbb.h (oneTBB), task_boost_fiber.h (Boost.Fiber).
//
// SessionOptions::tasks labels each sample of a profile with the task that ran.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfkit/count.h"
#include "perfkit/enable.h"
#include "perfkit/event_specs.h"
#include "perfkit/frame.h"

namespace PERFKIT_NAMESPACE {

class Metric;
namespace count {
class TaskCounterImpl;
struct TaskAccount;
}  // namespace count

struct TaskOptions {
  EventSpecs events{};                  // As FrameOptions::events.
  std::optional<ReadPath> only_path{};  // As CounterOptions::only_path.
  // Maximum at the same time. What tasks do on further threads is not counted, and a task that was resumed on one has
  // no counts in Task::totals() and is not in the quantiles. A zone that is entered there is not counted at all: what
  // its task does in it later, on other threads, belongs to the self of the zone or task around it.
  size_t max_threads = 256;
  // Maximum number of names of tasks and paths of zones together; larger values than 65,532 are lowered to that. The
  // counts of further zones belong to the zones or tasks around them.
  size_t max_zones = 256;
};

// What one task has counted, or what all threads have counted outside of tasks.
struct TaskTotals {
  // By event. kOtherThread after an error (TaskStats::cross_thread). kNotCounted after such an error of a task that
  // interrupted it: when it ran again is not known, so a part of it counts outside of tasks.
  std::array<Count, kMaxEvents> counts{};
  // Time for which it ran on attached threads, by the tick counter; 0 after an error of its own. Excludes the time
  // during which another task interrupted it. For Outside(): the time that attached threads spent outside of tasks, or
  // in tasks after such an error.
  uint64_t run_ns = 0;
  uint64_t runs = 0;        // How often it was resumed.
  uint64_t migrations = 0;  // How often it was resumed on another thread than before.
  // Time between each Suspend (or Enqueue) and the next Resume. Excludes waits whose Resume is on a thread that is not
  // attached, and the wait after such an error.
  uint64_t wait_ns = 0;
};

// A name of tasks, or a zone in them: sums over all tasks of that name, on all threads. Tasks that still run count up
// to their last switch.
struct TaskZoneStats {
  std::string name;
  uint32_t depth = 0;  // 0: a name of tasks.
  size_t parent = 0;   // Index in the list; its own for a name of tasks.
  uint64_t calls = 0;  // How often the zone was entered; for a name of tasks, how often its tasks were resumed.
  // If true, tasks of this name were not counted for a time: TaskStats::cross_thread, also of a task that interrupted
  // them, or threads beyond max_threads. The times and counts, also of the zones in them, are lower bounds; but a self
  // includes zones that were entered on a thread beyond max_threads. If nothing was counted, `total` and `self` say so
  // in their validity.
  bool at_least = false;
  uint64_t run_ns = 0, self_run_ns = 0;
  std::array<Count, kMaxEvents> total{}, self{};  // total = self + the totals of all children, exactly.
  // The rest is for names of tasks. Quantiles are over the tasks that have ended, except those that were not counted
  // for a time; each task is one value.
  uint64_t created = 0;
  uint64_t ended = 0;
  uint64_t migrations = 0;  // As TaskTotals::migrations.
  uint64_t wait_ns = 0;
  Quantiles run_quantiles, wait_quantiles;  // In nanoseconds.
  std::array<Quantiles, kMaxEvents> quantiles{};
};

// What the TaskCounter accounts for about itself.
struct TaskStats {
  uint64_t created = 0;
  uint64_t ended = 0;
  // Tasks that were suspended or ended, or that left a zone, on a thread other than the one on which they ran. Also
  // tasks that ended while another task interrupted them. Their TaskTotals have no counts from then on.
  uint64_t cross_thread = 0;
  // Ignored calls: Resume of a task that already runs, and Suspend of a task that does not run or is not the innermost
  // one of its thread.
  uint64_t mismatched = 0;
  // Zones beyond max_zones, whose counts belong to the zones or tasks around them, and tasks whose name is beyond it:
  // their name is "(more names)".
  uint64_t dropped = 0;
  uint64_t unplaced = 0;         // Values of ended tasks that no histogram had room for: missing in quantiles.
  uint32_t threads = 0;          // Attached now.
  uint32_t refused_threads = 0;  // Threads beyond TaskOptions::max_threads: not counted.
};

#if PERFKIT_ENABLE
// Thread-safe. Not async-signal-safe. Must outlive its Tasks. In a forked child no event is counted, and Create returns
// an empty Task; run and wait times of the other tasks continue.
class TaskCounter {
 public:
  using Options = TaskOptions;

  // Opens and tests the events on this thread, in about 1 ms; the first time in a process 10 ms more, except on arm64,
  // to measure the rate of the tick counter.
  explicit TaskCounter(const Options& options);
  ~TaskCounter();
  TaskCounter(const TaskCounter&) = delete;
  TaskCounter& operator=(const TaskCounter&) = delete;

  // A task, suspended at first. Not thread-safe: any thread may use it, one at a time, as the scheduler hands it from
  // thread to thread. Its destructor ends it, and suspends it before if it is the innermost one on the calling thread.
  // Movable, not copyable. Assignment swaps the two Tasks: the previous task of the left side ends when the right-hand
  // object is destroyed. An empty Task (constructed by default, moved from, or from Create in a forked child) may be
  // resumed and suspended, which does nothing; its totals() are not counted.
  class [[nodiscard]] Task {
   public:
    Task() = default;
    Task(Task&& other) noexcept : account_(std::exchange(other.account_, nullptr)) {}
    Task& operator=(Task&& other) noexcept {
      std::swap(account_, other.account_);
      return *this;
    }
    ~Task() {
      if (account_ != nullptr) End(account_);
    }

    // The task runs on the calling thread from now on. A task that already runs there is interrupted: it gets no counts
    // until this one is suspended, and then runs again.
    void Resume() noexcept {
      if (account_ != nullptr) Resume(*account_);
    }
    // The task stops. Requires the thread on which it was resumed, and that it is the innermost one there.
    void Suspend() noexcept {
      if (account_ != nullptr) Suspend(*account_);
    }
    // A new task waits from now on: the time until its first Resume counts as a wait. No effect after the first Resume.
    void Enqueue() noexcept {
      if (account_ != nullptr) Enqueue(*account_);
    }
    // Declares that `awaiter`, of the same TaskCounter, awaits this task, in the zone in which `awaiter` is now. The
    // tasks that await `awaiter` now await this task, too: profiles name all of them, "level/load > file"
    // (SessionOptions::tasks). Counts do not change. Takes effect at the next switch of this task, and lasts until the
    // next SetAwaiter. An empty Task, or one of another TaskCounter, means that none awaits this task. A call with this
    // task itself has no effect. Any thread may call it, also while this task runs; requires that `awaiter` does not
    // run on another thread. Lock-free. Of more than 32 awaiters, and if there are very many different chains of them,
    // only the innermost are known: "(more tasks) > level > file".
    void SetAwaiter(const Task& awaiter) noexcept {
      if (account_ != nullptr) SetAwaiter(*account_, awaiter.account_);
    }
    // Returns what it has counted until its last switch. Requires that it does not run on another thread.
    TaskTotals totals() const;
    // Returns its number in its TaskCounter, from 1 on, as in profiles (ProfileSample::task_number). 0 for an empty
    // Task.
    uint64_t number() const noexcept;

   private:
    friend class TaskCounter;
    explicit Task(count::TaskAccount* account) : account_(account) {}
    static void Resume(count::TaskAccount& account) noexcept;
    static void Suspend(count::TaskAccount& account) noexcept;
    static void Enqueue(count::TaskAccount& account) noexcept;
    static void End(count::TaskAccount* account) noexcept;
    static void SetAwaiter(count::TaskAccount& account, const count::TaskAccount* awaiter) noexcept;
    count::TaskAccount* account_ = nullptr;
  };

  // Returns a new task. `name` as ZoneId; nullptr and "" are "(no name)". Equal names share their statistics. Locks;
  // allocates for a new name, and if the memory of no ended task can be reused.
  Task Create(ZoneId name);

  // Ends one task's part and begins another's with one snapshot. As from.Suspend() and to.Resume() otherwise.
  static void Switch(Task& from, Task& to) noexcept;

  // A zone of the task that runs on the calling thread. It stays open while the task is suspended, and may end on
  // another thread. Must end before the zones that were entered earlier in its task, and before the task. Does nothing
  // outside of tasks.
  class [[nodiscard]] Zone {
   public:
    Zone(TaskCounter& tasks, ZoneId id) noexcept : account_(tasks.EnterZone(id)) {}
    ~Zone() {
      if (account_ != nullptr) LeaveZone(*account_);
    }
    Zone(const Zone&) = delete;
    Zone& operator=(const Zone&) = delete;

   private:
    count::TaskAccount* account_;
  };

  // Attaches the calling thread now instead of at its first Resume. From then on, Outside() includes what it counts
  // outside of tasks. Returns false if there are too many threads, if the thread is exiting, or in a forked child.
  // Allocates.
  bool AttachThread();

  // Returns all names of tasks and zones, each parent before its children.
  std::vector<TaskZoneStats> zones() const;
  // Returns what all attached threads have counted outside of tasks, up to their last switch. Without runs, migrations
  // and waits.
  TaskTotals Outside() const;
  TaskStats Stats() const;

  // Returns tables as text: for each name and zone its run time, wait time and counts; then the counts outside of
  // tasks, the events that were not counted, and the errors in TaskStats. ">=" marks sums that lack a part
  // (TaskZoneStats::at_least). Nothing is subtracted: each part includes the cost of one snapshot.
  std::string FormatTasks() const;
  // As above, with a table for each of `metrics` (metric.h): its values for the total and the self of each name and
  // zone. The elapsed time of a metric is the time that the tasks ran. "(part)" marks values of sums that lack a part.
  std::string FormatTasks(std::span<const Metric> metrics) const;

  // The events, in the order of TaskOptions::events. Require i < size(). Views are valid as long as this object.
  size_t size() const;
  std::string_view name(size_t i) const;
  std::string_view reason(size_t i) const;  // Why event i can't be counted, or "".
  ReadPath path(size_t i) const;            // How event i is read; meaningless if it can't be counted.

 private:
  friend class count::TaskCounterImpl;

  count::TaskAccount* EnterZone(ZoneId id) noexcept;
  static void LeaveZone(count::TaskAccount& account) noexcept;

  std::shared_ptr<count::TaskCounterImpl> impl_;
};
#endif

}  // namespace PERFKIT_NAMESPACE

#if !PERFKIT_ENABLE
#include "perfkit/off/task_counter.h"
#endif

namespace PERFKIT_NAMESPACE {

// Resumes a task in the constructor and suspends it in the destructor. Requires the same thread for both, and that the
// task is the innermost one on it at the end. `task` must outlive it.
class [[nodiscard]] TaskScope {
 public:
  explicit TaskScope(TaskCounter::Task& task) noexcept : task_(task) { task_.Resume(); }
  ~TaskScope() { task_.Suspend(); }
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

 private:
  TaskCounter::Task& task_;
};

}  // namespace PERFKIT_NAMESPACE

#define PERFKIT_TASK_CONCAT_INNER(a, b) a##b
#define PERFKIT_TASK_CONCAT(a, b) PERFKIT_TASK_CONCAT_INNER(a, b)
#if PERFKIT_ENABLE
// Makes the rest of the enclosing block the zone `name`, a string literal, of the task that runs.
#define PERFKIT_TASK_ZONE(tasks, name)                                                          \
  const ::perfkit::TaskCounter::Zone PERFKIT_TASK_CONCAT(perfkit_task_zone_, __LINE__)((tasks), \
                                                                                       ::perfkit::ZoneId{"" name})
#else
// Names `tasks` without evaluating it, so that it does not become an unused parameter.
#define PERFKIT_TASK_ZONE(tasks, name) static_assert(sizeof(tasks) != 0, "" name)
#endif
