// Finds the task of a sample in the changes of its thread.
#include "perfkit/task_labels.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/count/task/task_changes.h"
#include "src/count/task/task_counter_impl.h"
#include "src/sys/clock.h"

namespace perfkit {

using count::TaskChanges;
using count::TaskEvent;

struct TaskLabels::Impl {
  Impl(std::unique_ptr<count::TaskRecording> recording, size_t max)
      : changes(std::move(recording)), max_bytes(max), since_ns(sys::ClockNs(CLOCK_MONOTONIC)) {}

  // What is known of a tid, which several threads may have had.
  struct Threads {
    std::vector<size_t> indices{};  // In changes.threads().
    uint64_t unknown_from_ns = UINT64_MAX;
  };

  void Read() {
    changes.Read();
    if (changes.bytes() > max_bytes) ForgetOldest();
    by_tid.clear();
    open_lost = 0;
    for (size_t i = 0; i < changes.threads().size(); ++i) by_tid[changes.threads()[i].tid].indices.push_back(i);
    changes.ReadGaps([&](const TaskEvent& gap) {
      uint64_t& unknown_from_ns = by_tid[gap.tid].unknown_from_ns;
      unknown_from_ns = std::min(unknown_from_ns, gap.from_ns);
      open_lost += gap.lost;
    });
  }

  // One reading may bring many times the maximum. Each thread keeps its last change.
  void ForgetOldest() {
    changes.ForgetThreads([this](const TaskChanges::Thread& thread) {
      if (thread.has_ended) forgotten_ns = std::max(forgotten_ns, thread.last_ns + 1);
      return thread.has_ended;
    });
    for (size_t before = SIZE_MAX; changes.bytes() > max_bytes && changes.bytes() < before;) {
      before = changes.bytes();
      changes.Forget(2);
    }
  }

  // Returns the change that holds; nullopt if it is not known.
  std::optional<TaskChanges::Change> At(uint32_t tid, uint64_t time_ns) {
    if (time_ns > changes.read_until_ns()) Read();
    if (time_ns < since_ns || time_ns > changes.read_until_ns()) return std::nullopt;
    const auto found = by_tid.find(tid);
    // A thread that is not known here was never attached, or it has ended and is forgotten.
    if (found == by_tid.end()) return Outside(time_ns);
    if (time_ns >= found->second.unknown_from_ns) return std::nullopt;
    TaskChanges::Change change{};
    // At most one of the threads of a tid is in a task at a time.
    for (const size_t i : found->second.indices) {
      const TaskChanges::Thread& thread = changes.threads()[i];
      if (time_ns < thread.known_from_ns) return std::nullopt;
      if (const TaskChanges::Change at = thread.At(time_ns); at.text != TaskChanges::kOutside) change = at;
    }
    return change.text == TaskChanges::kOutside ? Outside(time_ns) : change;
  }
  std::optional<TaskChanges::Change> Outside(uint64_t time_ns) const {
    return time_ns < forgotten_ns ? std::nullopt : std::optional(TaskChanges::Change{});
  }

  TaskChanges changes;
  const size_t max_bytes;
  const uint64_t since_ns;
  uint64_t forgotten_ns = 0;  // Threads that had ended by then are forgotten, with all they did.
  std::unordered_map<uint32_t, Threads> by_tid;
  uint64_t open_lost = 0;
};

TaskLabels::TaskLabels(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TaskLabels::TaskLabels(TaskLabels&&) noexcept = default;
TaskLabels& TaskLabels::operator=(TaskLabels&&) noexcept = default;
TaskLabels::~TaskLabels() = default;

absl::StatusOr<TaskLabels> TaskLabels::Start(const TaskCounter& tasks, size_t max_bytes) {
  absl::StatusOr<std::unique_ptr<count::TaskRecording>> recording = count::TaskCounterImpl::Of(tasks)->Record();
  if (!recording.ok()) return recording.status();
  return TaskLabels(std::make_unique<Impl>(*std::move(recording), max_bytes));
}

TaskLabel TaskLabels::At(uint32_t tid, uint64_t time_ns) {
  const std::optional<TaskChanges::Change> change = impl_->At(tid, time_ns);
  if (!change || change->text == TaskChanges::kUnknown) {
    return {.path = TaskChanges::kUnknownTask, .is_known = false};
  }
  return {.path = impl_->changes.paths()[change->text], .number = change->number};
}

uint64_t TaskLabels::lost() const { return impl_->changes.lost() + impl_->open_lost; }

}  // namespace perfkit
