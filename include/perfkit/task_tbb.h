// Counts work of oneTBB (Threading Building Blocks): what threads do in an arena, and tasks that are suspended.
//
//   tbb::task_arena arena;
//   perfkit::TaskArenaObserver observer(tasks, arena, {"physics arena"});    // from now on, each thread in it
//
//   group.run(perfkit::CountedJob(tasks, {"load"}, [&](perfkit::TaskCounter::Task& task) {     // task_job.h
//     perfkit::SuspendTask(task, [&](tbb::task::suspend_point point) { io.OnDone([=] { tbb::task::resume(point); });
//     });
//   }));                                                                     // goes on here, on any thread
//
// The counts of a job are its own. What threads do in the arena outside of counted jobs, also the search for work,
// belongs to the arena's name. In task_group::wait and nested parallel algorithms, the thread runs other jobs: put a
// TaskPause (task_job.h) around them in a counted job. Without it, the job's counts include those of jobs that are not
// counted, and the job has no counts if it continues on another thread (TaskStats::cross_thread). To suspend a job,
// call SuspendTask.
//
// Needs oneTBB 2021 or later. Link TBB::tbb.
#pragma once

#include <oneapi/tbb/task.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_scheduler_observer.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "perfkit/task_counter.h"
#include "perfkit/task_job.h"

namespace PERFKIT_NAMESPACE {

// Counts what threads do in an arena as tasks of one name, one for each slot of the arena: from the entry of a thread
// to its exit. In nested arenas, the inner one counts. Thread-safe.
//
// A thread that is in the arena when the observer is constructed counts from its next job on. A thread that is in it
// when the observer is destroyed counts up to its last switch; TaskStats::cross_thread counts these threads. For whole
// counts, destroy the observer after tbb::finalize, or when no thread is in the arena any more.
class TaskArenaObserver final : public oneapi::tbb::task_scheduler_observer {
 public:
  // `name` as TaskCounter::Create. `tasks` and `arena` must outlive it. Initializes the arena.
  TaskArenaObserver(TaskCounter& tasks, oneapi::tbb::task_arena& arena, ZoneId name)
      : oneapi::tbb::task_scheduler_observer(Initialized(arena)) {
    // One more than threads: an arena for one thread has a slot for a worker that runs what is enqueued.
    const auto slots = static_cast<size_t>(std::max(arena.max_concurrency(), 1)) + 1;
    for (size_t i = 0; i < slots; ++i) slots_.push_back(tasks.Create(name));
    observe(true);
  }
  ~TaskArenaObserver() override { observe(false); }
  TaskArenaObserver(const TaskArenaObserver&) = delete;
  TaskArenaObserver& operator=(const TaskArenaObserver&) = delete;

  // Called by TBB.
  void on_scheduler_entry(bool) override {
    if (TaskCounter::Task* const task = OwnSlot(); task != nullptr) task->Resume();
  }
  void on_scheduler_exit(bool) override {
    if (TaskCounter::Task* const task = OwnSlot(); task != nullptr) task->Suspend();
  }

 private:
  static oneapi::tbb::task_arena& Initialized(oneapi::tbb::task_arena& arena) {
    arena.initialize();
    return arena;
  }
  // A slot is occupied by one thread at a time, from before the entry until after the exit.
  TaskCounter::Task* OwnSlot() {
    const int slot = oneapi::tbb::this_task_arena::current_thread_index();
    const bool is_known = slot >= 0 && static_cast<size_t>(slot) < slots_.size();
    return is_known ? &slots_[static_cast<size_t>(slot)] : nullptr;
  }

  std::vector<TaskCounter::Task> slots_;  // Not resized after the constructor.
};

// tbb::task::suspend for a job that is counted as `task`: the task is suspended until the job continues, on any thread.
// `function` as for tbb::task::suspend. Requires that `task` is the innermost one on the calling thread.
template <class Function>
void SuspendTask(TaskCounter::Task& task, Function&& function) {
  const TaskPause pause(task);
  oneapi::tbb::task::suspend(std::forward<Function>(function));
}

}  // namespace PERFKIT_NAMESPACE
