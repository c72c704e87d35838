// The log of one thread's tasks.
#include "src/count/task/task_log.h"

namespace perfkit::count {
namespace {

constexpr size_t kRoomAfterLoss = 256;  // words: some switches fit before the next loss

}  // namespace

// Returns false if there is no reader. Otherwise the log of the reader's epoch has begun.
bool TaskLog::IsCurrent(const TaskPosition& before, uint64_t before_ticks) noexcept {
  const uint64_t reader = epoch();
  if (reader == 0) return false;
  if (has_begun(reader)) return true;
  const uint64_t words[] = {reader, before_ticks, before.task, before.awaiters};
  return Begin(before.node, words);
}

void TaskLog::Add(const TaskPosition& before, uint64_t before_ticks, const TaskPosition& now, uint64_t ticks) noexcept {
  if (!IsCurrent(before, before_ticks)) return;
  if (has_lost() && HasRoom(kRoomAfterLoss)) WriteGap();
  const uint64_t words[] = {ticks, now.task};
  Write(ZoneRecordKind::kTask, now.node, now.awaiters, words, ticks);
}

void TaskLog::Abandon(uint64_t ticks) noexcept {
  if (const uint64_t reader = epoch(); reader != 0 && has_begun(reader)) {
    Write(ZoneRecordKind::kAbandon, 0, 0, {}, ticks);
  }
}

void TaskLog::End(const TaskPosition& before, uint64_t before_ticks, uint64_t ticks) noexcept {
  if (IsCurrent(before, before_ticks)) WriteEnd(ticks);
}

}  // namespace perfkit::count
