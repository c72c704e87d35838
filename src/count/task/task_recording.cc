// Converts the records of the threads' logs to TaskEvents.
#include "src/count/task/task_recording.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "src/count/task/task_counter_impl.h"

namespace perfkit::count {
TaskRecording::TaskRecording(std::shared_ptr<TaskCounterImpl> impl, uint64_t ns_per_tick_q32)
    : impl_(std::move(impl)), reader_(ns_per_tick_q32) {}

TaskRecording::~TaskRecording() { impl_->EndRecording(*this); }

void TaskRecording::Add(TaskThread& thread) {
  reader_.Add(thread.serial(), thread.tid(), thread.StartLog(reader_.epoch()));
}

std::string TaskRecording::PathOf(const TaskPosition& position) const { return impl_->PathOf(position); }
std::string TaskRecording::TaskOf(uint16_t node) const { return impl_->TaskOf(node); }
uint32_t TaskRecording::refused_threads() const { return impl_->refused_threads(); }

bool TaskRecording::Read(absl::FunctionRef<void(const TaskEvent& event)> visit) {
  if (impl_->in_forked_child()) return false;  // A thread that is not here may hold the reader's lock.
  outside_ = impl_->ThreadsOutside();
  lost_ = impl_->ThreadsInLostTasks();
  return reader_.Read([&](Reader::Log& log, const ZoneRecord& record) { visit(EventOf(log, record)); },
                      Reader::GapsTo(visit));
}

TaskEvent TaskRecording::EventOf(Reader::Log& log, const ZoneRecord& record) const {
  TaskEvent event{.kind = record.kind, .thread = log.thread, .tid = log.tid};
  switch (record.kind) {
    case ZoneRecordKind::kBegin:
      event.from_ns = record.words[1] == 0 ? 0 : reader_.NextNs(log, record.words[1]);
      event.position = {record.id, static_cast<uint16_t>(record.words[3]), record.words[2]};
      break;
    case ZoneRecordKind::kTask:
      event.from_ns = reader_.NextNs(log, record.words[0]);
      event.position = {record.id, static_cast<uint16_t>(record.missing), record.words[1]};
      break;
    case ZoneRecordKind::kGap:
      event.from_ns = reader_.ToNs(record.words[0]);
      event.to_ns = reader_.ToNs(record.words[1]);
      event.lost = record.words[2];
      break;
    case ZoneRecordKind::kEnd: event.from_ns = reader_.NextNs(log, record.words[0]); break;
    default: break;  // kAbandon has no words; the others are of zones
  }
  return event;
}

// A thread that has not switched since the recording began is in no task, or its task is not known. It was in none
// before its log was read: now it may have left the task that it was in. The list of threads is locked before the
// reader, as in Add.
void TaskRecording::ReadGaps(absl::FunctionRef<void(const TaskEvent& event)> visit) const {
  const std::vector<uint64_t> lost_now = impl_->ThreadsInLostTasks();
  const auto has = [](const std::vector<uint64_t>& threads, const Reader::Log& log) {
    return std::find(threads.begin(), threads.end(), log.thread) != threads.end();
  };
  const auto visit_gap = Reader::GapsTo(visit);
  reader_.ReadGaps([&](const Reader::Log& log) { return has(lost_, log) || has(lost_now, log); },
                   [&](const Reader::Log& log, uint64_t from_ns, uint64_t to_ns, uint64_t records) {
                     if (log.has_begun || !has(outside_, log)) visit_gap(log, from_ns, to_ns, records);
                   });
}

}  // namespace perfkit::count
