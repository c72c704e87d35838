// Counts the jobs of a queue of functions: std::function, a thread pool, tbb::task_group.
//
//   std::deque<std::function<void()>> queue;
//   queue.push_back(perfkit::CountedJob(tasks, {"decode"}, [] { … }));
//
// Each job is a task: a call adds the counts of its thread to it. Its wait is the time in the queue, from CountedJob to
// the call, and the time between two calls if it is called several times. A job that waits for something in the middle
// takes its task as its first argument, and puts a TaskPause around the wait:
//
//   perfkit::CountedJob(tasks, {"load"}, [&](perfkit::TaskCounter::Task& task) {
//     Parse(file);
//     const perfkit::TaskPause pause(task);                          // for the rest of the block
//     group.wait();                                                  // may run other jobs
//   });
#pragma once

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include "perfkit/task_counter.h"

namespace PERFKIT_NAMESPACE {

// Suspends a task in the constructor and resumes it in the destructor, which may run on another thread. Requires that
// the task is the innermost one on the thread of the constructor. `task` must outlive it.
class [[nodiscard]] TaskPause {
 public:
  explicit TaskPause(TaskCounter::Task& task) noexcept : task_(task) { task_.Suspend(); }
  ~TaskPause() { task_.Resume(); }
  TaskPause(const TaskPause&) = delete;
  TaskPause& operator=(const TaskPause&) = delete;

 private:
  TaskCounter::Task& task_;
};

namespace detail {

// A function with its task. Copies share both, because std::function and others copy what they hold.
template <class Function>
class CountedFunction {
 public:
  template <class Given>
  CountedFunction(TaskCounter& tasks, ZoneId name, Given&& function)
      : state_(std::make_shared<State>(tasks.Create(name), std::forward<Given>(function))) {
    state_->task.Enqueue();
  }

  template <class... Arguments>
  decltype(auto) operator()(Arguments&&... arguments) const {
    const TaskScope scope(state_->task);
    if constexpr (std::is_invocable_v<Function&, TaskCounter::Task&, Arguments...>) {
      return std::invoke(state_->function, state_->task, std::forward<Arguments>(arguments)...);
    } else {
      return std::invoke(state_->function, std::forward<Arguments>(arguments)...);
    }
  }

 private:
  struct State {
    template <class Given>
    State(TaskCounter::Task&& own, Given&& given) : task(std::move(own)), function(std::forward<Given>(given)) {}
    TaskCounter::Task task;
    Function function;
  };
  std::shared_ptr<State> state_;
};

}  // namespace detail

// Returns a job: a function object that calls `function`, returns its result, and counts the call as a task `name` of
// `tasks`. It can be copied, as std::function requires, even if `function` cannot. All copies share one function object
// and one task: call only one at a time. The task ends when the last copy is destroyed. If `function` takes a
// TaskCounter::Task& as its first argument, it gets its task. Allocates once, and as TaskCounter::Create. `tasks` must
// outlive the job. With PERFKIT_ENABLE=0 the job is not counted, but otherwise the same.
template <class Function>
auto CountedJob(TaskCounter& tasks, ZoneId name, Function&& function) {
  return detail::CountedFunction<std::decay_t<Function>>(tasks, name, std::forward<Function>(function));
}

}  // namespace PERFKIT_NAMESPACE
