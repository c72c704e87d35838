// Switches of tasks.
#include <perfkit/task_counter.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/events.h"

namespace bench {
namespace {

// Threads that run `work` again and again until the end of the case.
class BusyThreads {
 public:
  // Returns when each of them has begun.
  template <class Work>
  BusyThreads(size_t count, Work work) {
    for (size_t i = 0; i < count; ++i) threads_.emplace_back([this, work] { Run(work); });
    while (begun_.load(std::memory_order_relaxed) != count) std::this_thread::yield();
  }
  ~BusyThreads() {
    stopped_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;

 private:
  template <class Work>
  void Run(const Work& work) {
    auto step = work();  // Made on its thread.
    step();
    begun_.fetch_add(1, std::memory_order_relaxed);
    while (!stopped_.load(std::memory_order_relaxed)) step();
  }

  std::atomic<size_t> begun_{0};
  std::atomic<bool> stopped_{false};
  std::vector<std::thread> threads_;
};

// Returns false, and fails the case, if an event has no number.
bool AllCounted(benchmark::State& state, const perfkit::TaskCounter& tasks) {
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks.reason(i).empty()) continue;
    state.SkipWithError(std::string(tasks.reason(i)).c_str());
    return false;
  }
  return true;
}

void Switch(perfkit::TaskCounter::Task& task) {
  task.Resume();
  benchmark::ClobberMemory();
  task.Suspend();
}

// A task that is resumed and suspended, with four events that need no system call.
void TaskSwitch(benchmark::State& state) {
  perfkit::TaskCounter tasks({.events = Four()});
  if (!AllCounted(state, tasks)) return;
  perfkit::TaskCounter::Task task = tasks.Create({"task"});
  for (auto _ : state) Switch(task);
}
BENCHMARK(TaskSwitch)->Name("Task/switch");

constexpr size_t kOthers = 15;

// The same while 15 other threads switch tasks of the same TaskCounter: CPU time of this thread alone. All tasks have
// one name, so that whatever is shared by name is shared here.
void TaskSwitch16(benchmark::State& state) {
  perfkit::TaskCounter tasks({.events = Four()});
  if (!AllCounted(state, tasks)) return;
  const BusyThreads others(kOthers, [&tasks] {
    return [task = tasks.Create({"task"})]() mutable {
      for (int i = 0; i < 1000; ++i) Switch(task);
    };
  });
  perfkit::TaskCounter::Task task = tasks.Create({"task"});
  for (auto _ : state) Switch(task);
  if (tasks.Stats().refused_threads != 0) state.SkipWithError("not all threads were counted");
}
BENCHMARK(TaskSwitch16)->Name("Task/switch16");

// The same by one snapshot, from one task to the next.
void TaskToTask(benchmark::State& state) {
  perfkit::TaskCounter tasks({.events = Four()});
  perfkit::TaskCounter::Task one = tasks.Create({"one"}), two = tasks.Create({"two"});
  one.Resume();
  for (auto _ : state) {
    perfkit::TaskCounter::Switch(one, two);
    perfkit::TaskCounter::Switch(two, one);
  }
}
BENCHMARK(TaskToTask)->Name("Task/switch_to_twice");

}  // namespace
}  // namespace bench
