// TaskCounter with PERFKIT_ENABLE=0. Included by task_counter.h; do not include it directly.
#pragma once

#include "perfkit/off/reason.h"
#include "perfkit/task_counter.h"

namespace PERFKIT_NAMESPACE {

class TaskCounter {
 public:
  using Options = TaskOptions;

  explicit TaskCounter(const Options&) noexcept {}
  TaskCounter(const TaskCounter&) = delete;
  TaskCounter& operator=(const TaskCounter&) = delete;

  class [[nodiscard]] Task {
   public:
    Task() noexcept {}
    Task(Task&&) noexcept {}
    Task& operator=(Task&&) noexcept { return *this; }
    ~Task() {}  // A variable with a destructor counts as used.

    void Resume() noexcept {}
    void Suspend() noexcept {}
    void Enqueue() noexcept {}
    void SetAwaiter(const Task&) noexcept {}
    TaskTotals totals() const { return {}; }
    uint64_t number() const noexcept { return 0; }
  };

  Task Create(ZoneId) noexcept { return {}; }
  static void Switch(Task&, Task&) noexcept {}

  class [[nodiscard]] Zone {
   public:
    Zone(TaskCounter&, ZoneId) noexcept {}
    ~Zone() {}  // As above.
    Zone(const Zone&) = delete;
    Zone& operator=(const Zone&) = delete;
  };

  bool AttachThread() { return false; }
  std::vector<TaskZoneStats> zones() const { return {}; }
  TaskTotals Outside() const { return {}; }
  TaskStats Stats() const { return {}; }
  std::string FormatTasks() const { return {}; }
  size_t size() const { return 0; }
  std::string_view name(size_t) const { return ""; }
  std::string_view reason(size_t) const { return detail::kOffReason; }
  ReadPath path(size_t) const { return ReadPath::kGroupRead; }
};

}  // namespace PERFKIT_NAMESPACE
