// Counts tasks: jobs, fibers and coroutines, which stop in the middle and continue on any thread.
//
//   perfkit::TaskCounter tasks({.events = {"task-clock", "page-faults"}});
//   perfkit::TaskCounter::Task task = tasks.Create({"pathfinding"});   // beside each job, fiber or coroutine
//   scheduler:   task.Resume();  SwitchTo(fiber);  task.Suspend();     // on any thread
//   in the job:  PERFKIT_TASK_ZONE(tasks, "expand");                   // stays open while the task is suspended
//   for (const perfkit::TaskZoneStats& zone : tasks.zones()) Show(zone.name, zone.total, zone.wait_quantiles);
//
// A task is an account: it gets the counts of the thread on which it runs; while it is suspended, it gets none. Each
// part is the difference of two snapshots of its own thread's events, so a task that migrates has exact counts. At each
// switch one snapshot ends one account and begins another: the tasks and what was counted outside of them add up to
// what the threads have counted, exactly.
//
// With the usual software events, Resume, Suspend and zones make no system call. They never lock or allocate, except
// the first on each thread, which opens its events, and the first entry of each zone. A TaskCounter never fails: an
// event that can't be counted has no number, and a reason. task_coroutine.h has an adapter for C++20 coroutines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "perfkit/count.h"
#include "perfkit/enable.h"
#include "perfkit/event_specs.h"
#include "perfkit/frame.h"

namespace PERFKIT_NAMESPACE {

namespace count {
class TaskCounterImpl;
struct TaskAccount;
}  // namespace count

struct TaskOptions {
  EventSpecs events{};                  // As FrameOptions::events.
  std::optional<ReadPath> only_path{};  // As CounterOptions::only_path.
  size_t max_threads = 256;             // Maximum at the same time; what tasks do on more threads is not counted.
  // Maximum names of tasks and paths of zones, at most 65,532; further zones are in their parents.
  size_t max_zones = 256;
};

// What one task has counted, or what all threads have counted outside of tasks.
struct TaskTotals {
  std::array<Count, kMaxEvents> counts{};  // By event.
  uint64_t run_ns = 0;                     // While it was open on an attached thread, by the tick counter.
  uint64_t runs = 0;                       // Parts: how often it was resumed.
  uint64_t migrations = 0;                 // How often on another thread than before.
  // From each Suspend to the next Resume on an attached thread; not after a Suspend on a wrong thread
  // (TaskStats::cross_thread).
  uint64_t wait_ns = 0;
};

// A name of tasks, or a zone in them: sums over all tasks of that name, on all threads. Tasks that still run count up
// to their last switch.
struct TaskZoneStats {
  std::string name;
  uint32_t depth = 0;  // 0: a name of tasks.
  size_t parent = 0;   // Index in the list; its own for a name of tasks.
  uint64_t calls = 0;  // How often the zone was entered; for a name of tasks, how often one was resumed.
  uint64_t run_ns = 0, self_run_ns = 0;
  std::array<Count, kMaxEvents> total{}, self{};  // total = self + the totals of all children, exactly.
  // The rest is for names of tasks. Quantiles are over the tasks that have ended; each task is one value.
  uint64_t ended = 0;
  uint64_t wait_ns = 0;
  Quantiles run_quantiles, wait_quantiles;  // In nanoseconds.
  std::array<Quantiles, kMaxEvents> quantiles{};
};

// What the TaskCounter accounts for about itself.
struct TaskStats {
  uint64_t created = 0;
  uint64_t ended = 0;
  // Tasks that were suspended, that ended, or that left a zone on another thread than the one they ran on; and tasks
  // that ended while interrupted. They have no number from then on.
  uint64_t cross_thread = 0;
  uint64_t mismatched = 0;  // Resumed while open, or suspended while not the innermost one: ignored.
  uint64_t dropped = 0;     // Zones beyond max_zones, in their parents; tasks beyond it are "(more names)".
  uint64_t unplaced = 0;    // Values of ended tasks that no histogram had room for.
  uint32_t threads = 0;     // Attached now.
  uint32_t refused_threads = 0;
};

#if PERFKIT_ENABLE
// Thread-safe. Not async-signal-safe. Must outlive its Tasks. In a forked child no event is counted, and Create returns
// an empty Task; run and wait times of the other tasks continue.
class TaskCounter {
 public:
  using Options = TaskOptions;

  // Opens and tests the events on this thread, in about 1 ms.
  explicit TaskCounter(const Options& options);
  ~TaskCounter();
  TaskCounter(const TaskCounter&) = delete;
  TaskCounter& operator=(const TaskCounter&) = delete;

  // A task, suspended at first. One thread at a time may use it: the scheduler that hands it from thread to thread
  // orders their calls. Its destructor ends it; if it is the innermost one on the calling thread, that suspends it
  // first.
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

    // The task runs on the calling thread from now on. A task that already runs there is interrupted: it counts nothing
    // until this one is suspended, and then runs again.
    void Resume() noexcept {
      if (account_ != nullptr) Resume(*account_);
    }
    // The task stops. Requires the thread on which it was resumed, and that it is the innermost one there.
    void Suspend() noexcept {
      if (account_ != nullptr) Suspend(*account_);
    }
    // Returns what it has counted until its last switch. Requires that it does not run on another thread.
    TaskTotals totals() const;

   private:
    friend class TaskCounter;
    explicit Task(count::TaskAccount* account) : account_(account) {}
    static void Resume(count::TaskAccount& account) noexcept;
    static void Suspend(count::TaskAccount& account) noexcept;
    static void End(count::TaskAccount* account) noexcept;
    count::TaskAccount* account_ = nullptr;
  };

  // Returns a new task. `name` as ZoneId; equal names share their statistics. Locks; allocates if the memory of no
  // ended task can be reused.
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

  // Attaches the calling thread now instead of at its first Resume. What it counts outside of tasks counts from then.
  // Returns false if there are too many threads, if the thread is exiting, and in a forked child. Allocates.
  bool AttachThread();

  // Returns all names of tasks and zones, each parent before its children.
  std::vector<TaskZoneStats> zones() const;
  // Returns what all attached threads have counted outside of tasks, up to their last switch. Without runs, migrations
  // and waits.
  TaskTotals Outside() const;
  TaskStats Stats() const;

  size_t size() const;
  std::string_view name(size_t i) const;
  std::string_view reason(size_t i) const;  // Why event i has no number, or "".
  ReadPath path(size_t i) const;            // How event i is read; meaningless if it is not.

 private:
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

// Runs a task from construction to destruction.
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
// As PERFKIT_ZONE.
#define PERFKIT_TASK_ZONE(tasks, name) static_assert(sizeof(tasks) != 0, "" name)
#endif
