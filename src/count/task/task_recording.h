// Records which tasks the threads of a TaskCounter run, with times of CLOCK_MONOTONIC.
//
//   threads ── TaskLog each ──> TaskRecording::Read ──> TaskEvent, thread by thread, each in order of time
//
// Outlives the TaskCounter. Ends when it is destroyed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/count/frame/log_reader.h"
#include "src/count/task/task_log.h"

namespace perfkit::count {

class TaskCounterImpl;
class TaskThread;

// A record of a thread's log (task_log.h has the kinds). kBegin and kTask: the thread is at `position` from `from_ns`
// on. kAbandon: the thread was not at the position of the last event.
struct TaskEvent {
  ZoneRecordKind kind = ZoneRecordKind::kTask;
  uint64_t thread = 0;  // Not used again for another thread of the same TaskCounter.
  uint32_t tid = 0;
  uint64_t from_ns = 0;  // kBegin: 0 means since the thread started. kGap: the time from which on nothing is known.
  uint64_t to_ns = 0;    // kGap: its end.
  TaskPosition position{};
  uint64_t lost = 0;  // kGap: number of lost records.
};

// Thread-safe.
class TaskRecording {
 public:
  // For TaskCounterImpl::Record.
  TaskRecording(std::shared_ptr<TaskCounterImpl> impl, uint64_t ns_per_tick_q32);
  ~TaskRecording();
  TaskRecording(const TaskRecording&) = delete;
  TaskRecording& operator=(const TaskRecording&) = delete;

  // Visits what happened since the last call. Returns false once another recording listens, and in a forked child: then
  // that is not known.
  bool Read(absl::FunctionRef<void(const TaskEvent& event)> visit);
  // To be called after a Read that returned true. Visits a kGap without an end for each thread whose task is not known
  // now: its log is full; or it was in a task when the recording began, and has not switched since; or another thread
  // has suspended or ended its task since its last switch.
  void ReadGaps(absl::FunctionRef<void(const TaskEvent& event)> visit) const;

  // Returns the names of a position, "pathfinding/expand", after those of the tasks that await it: "level/load > file".
  // "" for the outside of tasks.
  std::string PathOf(const TaskPosition& position) const;
  // Returns the name of the task that a node is in.
  std::string TaskOf(uint16_t node) const;
  // Returns how many threads the TaskCounter has refused. Which tasks ran there is not known.
  uint32_t refused_threads() const;

  // For TaskCounterImpl, with its list of threads locked.
  void Add(TaskThread& thread);
  // To be called when another recording listens from now on.
  void Detach() { reader_.Detach(); }

 private:
  struct Nothing {};
  using Reader = LogReader<TaskLog, Nothing>;
  TaskEvent EventOf(Reader::Log& log, const ZoneRecord& record) const;

  const std::shared_ptr<TaskCounterImpl> impl_;
  Reader reader_;
  // Serial numbers of the threads that were in no task, or in a lost one, before the last Read. Used by its caller
  // only.
  std::vector<uint64_t> outside_, lost_;
};

}  // namespace perfkit::count
