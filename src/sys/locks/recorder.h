// What the interposed calls share: whether waits are recorded, the records, and the table of releases.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/sys/lock_waits.h"

namespace perfkit::sys::locks {

const LockWaitSource& Source();

// Waits that last so long are recorded; kOff: none are.
inline constexpr uint64_t kOff = UINT64_MAX;
[[gnu::visibility("hidden")]] extern std::atomic<uint64_t> g_threshold_ns;

// Returns true if waits are recorded. A load. Relaxed: pairs with the stores in Start and Stop. A wait that begins at
// the same moment may be recorded or not.
inline bool IsRecording() { return g_threshold_ns.load(std::memory_order_relaxed) != kOff; }

// A call that waits for a lock, from before the wait to its end. Requires IsRecording when it began.
class RecordedWait {
 public:
  // `holder`: LockWait::holder. `enters`: the lock does not show by itself that threads wait for it.
  RecordedWait(const void* lock, LockKind kind, uint32_t holder, bool enters);
  // Also if the thread is cancelled in the call: then there is no record.
  ~RecordedWait();
  RecordedWait(const RecordedWait&) = delete;
  RecordedWait& operator=(const RecordedWait&) = delete;

  // The call has returned. Keeps errno.
  void End(bool acquired);

 private:
  const void* const lock_;
  const bool enters_;
  LockWait wait_;
  uint64_t released_by_ = 0, released_ns_ = 0;  // the last release before the wait
};

// Returns true if threads wait that have entered.
bool IsAwaited(const void* lock);
// `tid`, 0 for the calling thread, is about to release, signal or post it. Async-signal-safe.
void NoteRelease(const void* lock, uint32_t tid = 0);

}  // namespace perfkit::sys::locks
