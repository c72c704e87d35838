// Notes which threads have started and ended, for samplers that open and close the rings of each thread.
//
// Each new thread is either attached or counted as missed, once. The rings of an ended thread are closed after
// the drain that follows the one which read its EXIT record, or later, once they have been read completely.
//
//   FORK record ──> born ──> attached │ refused: missed │ ended before: missed
//   EXIT record ──> ending ──(end of the drain)──> ended ──(rings were read)──> its rings are closed
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace perfkit::sample {

// Not thread-safe. Makes no system call: the caller lists, attaches and closes.
class ThreadTracker {
 public:
  // Note FORK and EXIT records.
  void Born(pid_t tid) { born_.push_back(tid); }
  void Ending(pid_t tid) { ending_.push_back(tid); }
  // Notes a thread whose EXIT record was lost or not written, once. Its tid may belong to another thread by now.
  void FoundEnded(pid_t tid);
  // There may be other new threads, without a record.
  void Rescan() { rescan_ = true; }
  // Returns true after Rescan, once.
  bool TakeRescan() { return std::exchange(rescan_, false); }

  // Returns true if threads are to be attached, or rings to be closed.
  bool has_changes() const { return rescan_ || !born_.empty() || !ended_.empty(); }
  // Calls `attach` for each thread of `list` that is not attached, until a round finds none: threads may start
  // meanwhile. A thread for which `attach` fails with another error than NotFound counts as missed.
  void AttachNewcomers(absl::FunctionRef<absl::StatusOr<std::vector<pid_t>>()> list,
                       absl::FunctionRef<bool(pid_t)> is_attached, absl::FunctionRef<absl::Status(pid_t)> attach);
  // Counts new threads that could not be attached because they have ended.
  void CountMissed(absl::FunctionRef<bool(pid_t)> is_attached);
  // Calls `leave` for each thread that ended before the last drain and whose rings have been read.
  void CloseEnded(absl::FunctionRef<bool(pid_t)> is_read, absl::FunctionRef<void(pid_t)> leave);
  // All records of the drain were read.
  void EndDrain();

  uint64_t missed() const { return missed_; }

 private:
  bool AttachRound(const std::vector<pid_t>& threads, absl::FunctionRef<bool(pid_t)> is_attached,
                   absl::FunctionRef<absl::Status(pid_t)> attach);

  std::vector<pid_t> born_;     // Threads that started since the last drain.
  std::vector<pid_t> refused_;  // Threads that could not be attached, and were counted as missed.
  std::vector<pid_t> ending_;   // Threads that ended in this drain; their rings may still hold records.
  std::vector<pid_t> ended_;    // Threads that ended before, and whose rings are open.
  bool rescan_ = false;
  uint64_t missed_ = 0;
};

}  // namespace perfkit::sample
