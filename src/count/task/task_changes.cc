// Adds a recording's events to the lists of the threads.
#include "src/count/task/task_changes.h"

#include <algorithm>

#include "src/count/task/task_nodes.h"
#include "src/sys/clock.h"

namespace perfkit::count {

TaskChanges::Change TaskChanges::Thread::At(uint64_t ns) const {
  const auto next = std::upper_bound(changes.begin(), changes.end(), ns,
                                     [](uint64_t at_ns, const Change& change) { return at_ns < change.ns; });
  return next == changes.begin() ? Change{} : *std::prev(next);
}

void TaskChanges::Read() {
  if (recording_ == nullptr) return;
  const uint64_t now_ns = sys::ClockNs(CLOCK_MONOTONIC);  // What a thread did before is in its log by now.
  is_detached_ = !recording_->Read([&](const TaskEvent& event) { Add(event); });
  if (is_detached_) return;
  read_until_ns_ = now_ns;
  gaps_.clear();
  recording_->ReadGaps([&](const TaskEvent& gap) { gaps_.push_back(gap); });
  refused_threads_ = recording_->refused_threads();
}

void TaskChanges::Stop() {
  recording_.reset();
  gaps_.clear();
}

void TaskChanges::ReadGaps(absl::FunctionRef<void(const TaskEvent& gap)> visit) const {
  for (const TaskEvent& gap : gaps_) visit(gap);
}

const TaskChanges::Thread* TaskChanges::Find(const TaskEvent& event) const {
  const auto known = by_serial_.find(event.thread);
  return known != by_serial_.end() ? &threads_[known->second] : nullptr;
}

void TaskChanges::Add(const TaskEvent& event) {
  const auto [entry, is_new] = by_serial_.try_emplace(event.thread, threads_.size());
  if (is_new) threads_.push_back({.tid = event.tid});
  Thread& thread = threads_[entry->second];
  switch (event.kind) {
    case ZoneRecordKind::kBegin:
      if (event.from_ns != 0) AddChange(thread, {.text = kUnknown});
      return AddChange(thread, ChangeTo(event.from_ns, event.position));
    case ZoneRecordKind::kTask: return AddChange(thread, ChangeTo(event.from_ns, event.position));
    case ZoneRecordKind::kAbandon:
      if (!thread.changes.empty()) thread.changes.back().number = 0, thread.changes.back().text = kUnknown;
      return;
    case ZoneRecordKind::kGap:
      lost_ += event.lost;
      AddChange(thread, {.ns = event.from_ns, .text = kUnknown});
      return AddChange(thread, {.ns = event.to_ns});
    case ZoneRecordKind::kEnd: thread.has_ended = true; return AddChange(thread, {.ns = event.from_ns});
    default: return;
  }
}

// The rounding of times never makes them run backwards.
void TaskChanges::AddChange(Thread& thread, const Change& change) {
  thread.last_ns = std::max(thread.last_ns, change.ns);
  if (thread.last_ns != 0) thread.first_ns = std::min(thread.first_ns, thread.last_ns);
  thread.changes.push_back({thread.last_ns, change.number, change.text});
  bytes_ += sizeof(Change);
}

// Texts are made once for each node and chain of tasks that await it.
TaskChanges::Change TaskChanges::ChangeTo(uint64_t ns, const TaskPosition& position) {
  if (position.node == TaskLog::kUnknownNode) return {.ns = ns, .text = kUnknown};
  if (position.node == TaskNodes::kOutside) return {.ns = ns};
  const auto [text, is_new] = texts_.try_emplace({position.awaiters, position.node}, paths_.size());
  if (is_new) {
    paths_.push_back(recording_->PathOf(position));
    names_.push_back(recording_->TaskOf(position.node));
  }
  return {.ns = ns, .number = position.task, .text = text->second};
}

uint64_t TaskChanges::PartsOf(std::span<const Change> changes) {
  return static_cast<uint64_t>(
      std::count_if(changes.begin(), changes.end(), [](const Change& change) { return change.number != 0; }));
}

uint64_t TaskChanges::ForgetFirst(Thread& thread, size_t count) {
  const uint64_t parts = PartsOf(std::span(thread.changes).first(count));
  bytes_ -= count * sizeof(Change);
  thread.changes.erase(thread.changes.begin(), thread.changes.begin() + static_cast<ptrdiff_t>(count));
  thread.known_from_ns = thread.changes[0].ns;
  return parts;
}

// The last change of each thread stays: it says which task runs there.
uint64_t TaskChanges::Forget(size_t divisor) {
  uint64_t parts = 0;
  for (Thread& thread : threads_) {
    if (thread.changes.empty()) continue;
    parts += ForgetFirst(thread, std::min(thread.changes.size() / divisor, thread.changes.size() - 1));
  }
  return parts;
}

void TaskChanges::ForgetUntil(uint64_t until_ns) {
  for (Thread& thread : threads_) {
    const auto later = std::ranges::upper_bound(thread.changes, until_ns, {}, &Change::ns);
    if (later != thread.changes.begin()) ForgetFirst(thread, static_cast<size_t>(later - thread.changes.begin()) - 1);
  }
}

uint64_t TaskChanges::ForgetThreads(absl::FunctionRef<bool(const Thread& thread)> is_forgotten) {
  uint64_t parts = 0;
  std::vector<Thread> left;
  std::map<uint64_t, size_t> by_serial;
  for (const auto& [serial, index] : by_serial_) {
    Thread& thread = threads_[index];
    if (is_forgotten(thread)) {
      parts += PartsOf(thread.changes);
      bytes_ -= thread.changes.size() * sizeof(Change);
      continue;
    }
    by_serial[serial] = left.size();
    left.push_back(std::move(thread));
  }
  threads_ = std::move(left);
  by_serial_ = std::move(by_serial);
  return parts;
}

}  // namespace perfkit::count
