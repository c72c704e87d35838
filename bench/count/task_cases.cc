// Switches of tasks.
#include <perfkit/task_counter.h>

#include <string>

#include "bench/support/events.h"

namespace bench {
namespace {

// A task that is resumed and suspended, with four events that need no system call.
void TaskSwitch(benchmark::State& state) {
  perfkit::TaskCounter tasks({.events = Four()});
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks.reason(i).empty()) return state.SkipWithError(std::string(tasks.reason(i)).c_str());
  }
  perfkit::TaskCounter::Task task = tasks.Create({"task"});
  for (auto _ : state) {
    task.Resume();
    benchmark::ClobberMemory();
    task.Suspend();
  }
}
BENCHMARK(TaskSwitch)->Name("Task/switch");

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
