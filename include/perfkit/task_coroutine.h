// Counts C++20 coroutines as tasks: each co_await that suspends suspends the task, and the coroutine's resumption on
// any thread resumes it.
//
//   struct Promise : perfkit::TaskPromise<Promise> { … };            // counts each co_await of its coroutines
//   perfkit::TaskCounter::Task& Promise::task();                     // the task of this coroutine
//
//   co_await perfkit::Counted(task, socket.Read());                  // or one co_await at a time
//
// If the awaited object belongs to a task and has a member task(), which returns that TaskCounter::Task, profiles show
// which task awaits it (Task::SetAwaiter).
//
//   struct Job { TaskCounter::Task& task(); … };                     // co_await job;  profiles: "level/load > job"
//
// An awaiter that suspends may let another thread resume the coroutine before its own await_suspend returns. So the
// task is suspended before the awaiter's await_suspend is called, and resumed in await_resume.
#pragma once

#include <concepts>
#include <coroutine>
#include <exception>
#include <type_traits>
#include <utility>

#include "perfkit/task_counter.h"

namespace PERFKIT_NAMESPACE {
namespace detail {

template <class T>
concept HasMemberAwait = requires(T&& awaited) {
  std::forward<T>(awaited).operator co_await();
};
template <class T>
concept HasFreeAwait = requires(T&& awaited) {
  operator co_await(std::forward<T>(awaited));
};

template <class T>
concept HasTask = requires(T& awaited) {
  { awaited.task() } -> std::same_as<TaskCounter::Task&>;
};

// Returns the awaiter of `awaited`, as co_await does.
template <class T>
decltype(auto) AwaiterOf(T&& awaited) {
  if constexpr (HasMemberAwait<T>) {
    return std::forward<T>(awaited).operator co_await();
  } else if constexpr (HasFreeAwait<T>) {
    return operator co_await(std::forward<T>(awaited));
  } else {
    return std::forward<T>(awaited);
  }
}

// Wraps an awaiter, held by value if it was a temporary.
template <class Awaiter>
class CountedAwaiter {
 public:
  template <class Awaited>
  CountedAwaiter(TaskCounter::Task& task, Awaited&& awaited)
      : task_(task), awaiter_(AwaiterOf(std::forward<Awaited>(awaited))) {}

  bool await_ready() { return awaiter_.await_ready(); }

  template <class Promise>
  auto await_suspend(std::coroutine_handle<Promise> coroutine) {
    suspended_ = true;
    if constexpr (HasTask<std::remove_reference_t<Awaiter>>) awaiter_.task().SetAwaiter(task_);
    task_.Suspend();
    const ResumeIfThrown guard(task_);
    // Do not touch this object after await_suspend returns: the coroutine may already run on another thread and have
    // destroyed it. If the awaiter does not suspend after all, await_resume follows at once.
    return awaiter_.await_suspend(coroutine);
  }

  decltype(auto) await_resume() {
    if (suspended_) task_.Resume();
    return awaiter_.await_resume();
  }

 private:
  // An awaiter that throws does not suspend, and await_resume does not follow.
  class ResumeIfThrown {
   public:
    explicit ResumeIfThrown(TaskCounter::Task& task) : task_(task), exceptions_(std::uncaught_exceptions()) {}
    ~ResumeIfThrown() {
      if (std::uncaught_exceptions() != exceptions_) task_.Resume();
    }
    ResumeIfThrown(const ResumeIfThrown&) = delete;
    ResumeIfThrown& operator=(const ResumeIfThrown&) = delete;

   private:
    TaskCounter::Task& task_;
    int exceptions_;
  };

  TaskCounter::Task& task_;
  Awaiter awaiter_;
  bool suspended_ = false;
};

}  // namespace detail

// Returns an awaiter for `awaited` that suspends `task` as long as the coroutine is suspended. Requires that `task`
// runs on the calling thread. `task`, and `awaited` if it is an lvalue, must outlive the awaiter. If `awaited` has an
// operator co_await and a member task(), calls awaited.task().SetAwaiter(task) now. If the awaiter has a member task(),
// calls awaiter.task().SetAwaiter(task) when it is about to suspend. Both hold until the next SetAwaiter.
template <class Awaited>
auto Counted(TaskCounter::Task& task, Awaited&& awaited) {
  if constexpr (detail::HasTask<std::remove_reference_t<Awaited>> &&
                (detail::HasMemberAwait<Awaited> || detail::HasFreeAwait<Awaited>)) {
    awaited.task().SetAwaiter(task);
  }
  using Awaiter = decltype(detail::AwaiterOf(std::forward<Awaited>(awaited)));
  using Held = std::conditional_t<std::is_lvalue_reference_v<Awaiter>, Awaiter, std::remove_reference_t<Awaiter>>;
  return detail::CountedAwaiter<Held>(task, std::forward<Awaited>(awaited));
}

// Base of a promise type that counts each co_await of its coroutines. `Promise` has a member task(), which returns the
// TaskCounter::Task of the coroutine. initial_suspend, final_suspend and co_yield do not call await_transform, so that
// task must be resumed when the coroutine starts to run, and suspended or ended when it ends; yield_value returns
// Counted(task(), std::suspend_always()). A promise with an await_transform of its own calls Counted there.
template <class Promise>
struct TaskPromise {
  template <class Awaited>
  auto await_transform(Awaited&& awaited) {
    return Counted(static_cast<Promise*>(this)->task(), std::forward<Awaited>(awaited));
  }
};

}  // namespace PERFKIT_NAMESPACE
