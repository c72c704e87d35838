// Counts the fibers of Boost.Fiber: each switch of a thread from one fiber to another switches their tasks.
//
//   boost::fibers::use_scheduling_algorithm<                                 // on each thread that runs fibers
//       perfkit::CountedAlgorithm<boost::fibers::algo::shared_work>>();
//   boost::fibers::fiber([&] {
//     perfkit::TaskCounter::Task task = tasks.Create({"pathfinding"});
//     const perfkit::FiberTask counted(task);                                // the rest of the block is the task
//     …                                                                      // it may wait, yield and migrate
//   });
//
// The task is suspended whenever the fiber is, and goes on with it on any thread. A fiber without a FiberTask counts
// outside of tasks.
//
// An algorithm with properties (algorithm_with_properties<P>) cannot be wrapped, because Boost calls its hooks with P.
// Derive P from FiberTaskProperties, use BasicFiberTask<P>, and call OnFiberAwakened and OnFiberPicked as
// CountedAlgorithm does.
//
// Needs Boost 1.74 or later. Link Boost::fiber.
#pragma once

#include <boost/fiber/algo/algorithm.hpp>
#include <boost/fiber/context.hpp>
#include <boost/fiber/properties.hpp>

#include "perfkit/task_counter.h"

namespace PERFKIT_NAMESPACE {

// A fiber's properties for FiberTask. Not thread-safe: used by the thread that runs the fiber, or hands it over.
class FiberTaskProperties : public boost::fibers::fiber_properties {
 public:
  explicit FiberTaskProperties(boost::fibers::context* fiber) noexcept : fiber_properties(fiber) {}

  TaskCounter::Task* task = nullptr;  // The task of the fiber's FiberTask; nullptr means none.
};

namespace detail {

inline thread_local TaskCounter::Task* running_fiber_task = nullptr;

// Returns the calling thread's variable: the task that runs for its current fiber. A fiber that waits may continue on
// another thread, so it must not keep the address. Not inlined, so that the compiler does not merge two calls.
[[gnu::noinline]] inline TaskCounter::Task*& RunningFiberTask() noexcept {
  asm volatile("" ::: "memory");
  return running_fiber_task;
}

inline TaskCounter::Task* TaskOfFiber(boost::fibers::context* fiber) noexcept {
  if (fiber == nullptr) return nullptr;
  auto* const properties = static_cast<FiberTaskProperties*>(fiber->get_properties());
  return properties != nullptr ? properties->task : nullptr;
}

// Suspends the task of the fiber that ran on the calling thread, if it has one, and resumes `next`, if it is not
// nullptr.
inline void SwitchFiberTask(TaskCounter::Task* next) noexcept {
  TaskCounter::Task*& running = RunningFiberTask();
  if (running == next) return;
  if (running != nullptr && next != nullptr) {
    TaskCounter::Switch(*running, *next);
  } else if (running != nullptr) {
    running->Suspend();
  } else {
    next->Resume();
  }
  running = next;
}

}  // namespace detail

// For algorithms of your own: to be called when the calling thread is about to run `next`, with what pick_next returns.
inline void OnFiberPicked(boost::fibers::context* next) noexcept {
  if (next != nullptr) detail::SwitchFiberTask(detail::TaskOfFiber(next));
}

// For algorithms of your own: to be called in awakened, before another thread may take `fiber`. A fiber that starts
// another one with launch::dispatch is switched out without a call of pick_next; this suspends its task.
inline void OnFiberAwakened(boost::fibers::context* fiber) noexcept {
  TaskCounter::Task* const task = detail::TaskOfFiber(fiber);
  if (task != nullptr && task == detail::RunningFiberTask()) detail::SwitchFiberTask(nullptr);
}

// A scheduling algorithm that also switches tasks. `Algorithm` is one of Boost.Fiber's, or another one that derives
// from boost::fibers::algo::algorithm. Constructed as `Algorithm`, by boost::fibers::use_scheduling_algorithm.
template <class Algorithm>
class CountedAlgorithm : public Algorithm {
 public:
  using Algorithm::Algorithm;

  void awakened(boost::fibers::context* fiber) noexcept override {
    OnFiberAwakened(fiber);
    Algorithm::awakened(fiber);
  }
  boost::fibers::context* pick_next() noexcept override {
    boost::fibers::context* const next = Algorithm::pick_next();
    OnFiberPicked(next);
    return next;
  }
};

// Runs a task in the calling fiber from construction to destruction. Requires CountedAlgorithm, or the two hooks above,
// on each thread that runs the fiber. `Properties` derives from FiberTaskProperties; if the fiber already has
// properties, these must derive from it, too. `task` must outlive it. A second one in the same fiber does nothing.
template <class Properties>
class [[nodiscard]] BasicFiberTask {
 public:
  explicit BasicFiberTask(TaskCounter::Task& task) {
    boost::fibers::context* const fiber = boost::fibers::context::active();
    if (fiber->get_properties() == nullptr) fiber->set_properties(new Properties(fiber));  // The fiber deletes it.
    auto* const properties = static_cast<FiberTaskProperties*>(fiber->get_properties());
    if (properties->task != nullptr) return;
    properties_ = properties;
    properties_->task = &task;
    detail::SwitchFiberTask(&task);
  }
  ~BasicFiberTask() {
    if (properties_ == nullptr) return;
    detail::SwitchFiberTask(nullptr);
    properties_->task = nullptr;
  }
  BasicFiberTask(const BasicFiberTask&) = delete;
  BasicFiberTask& operator=(const BasicFiberTask&) = delete;

 private:
  FiberTaskProperties* properties_ = nullptr;
};
using FiberTask = BasicFiberTask<FiberTaskProperties>;

}  // namespace PERFKIT_NAMESPACE
