// The log of the tasks that a thread runs. The thread writes it while a TaskRecording listens, which reads it.
//
//   kBegin   (epoch, ticks, task, awaiters) id: node   the log begins: the thread has been at `node` since `ticks`;
//                                                      ticks 0 means since it started
//   kTask    (ticks, task) id: node, missing: awaiters the thread is at `node` from `ticks` on; node 0 means in no
//   task,
//                                                      kUnknownNode that its task is not known
//   kAbandon ()                                        the last record is wrong: from its ticks to the next record the
//                                                      thread's task is not known
//   kGap, kEnd                                         as in record_ring.h
#pragma once

#include <cstdint>

#include "src/count/frame/record_ring.h"

namespace perfkit::count {

// Where a thread is: in a node of TaskNodes, in the task with this number, which other tasks may await.
struct TaskPosition {
  uint16_t node = 0;
  uint16_t awaiters = 0;  // AwaitChains
  uint64_t task = 0;
};

class TaskLog : public RecordRing {
 public:
  static constexpr uint16_t kUnknownNode = UINT16_MAX;

  using RecordRing::RecordRing;

  // For the writer. None allocates; records that find no room are counted in a kGap.
  // Logs that the thread is at `now` since `ticks`. If the log begins with this call, it begins with `before`, where
  // the thread was from `before_ticks` on.
  void Add(const TaskPosition& before, uint64_t before_ticks, const TaskPosition& now, uint64_t ticks) noexcept;
  // Logs that the last record, of `ticks`, is wrong: kAbandon.
  void Abandon(uint64_t ticks) noexcept;
  void End(const TaskPosition& before, uint64_t before_ticks, uint64_t ticks) noexcept;

 private:
  bool IsCurrent(const TaskPosition& before, uint64_t before_ticks) noexcept;
};

}  // namespace perfkit::count
