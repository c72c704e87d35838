// What the interposed calls share: whether waits are recorded, the records, and the table of releases.
#pragma once

#include <atomic>
#include <cstdint>

#include "src/sys/lock_waits.h"

namespace perfkit::sys::locks {

// Returns the functions by which a session reads the records. Valid for the whole process.
const LockWaitSource& Source();

// Waits of this length or longer are recorded; kOff: none are.
inline constexpr uint64_t kOff = UINT64_MAX;
[[gnu::visibility("hidden")]] extern std::atomic<uint64_t> g_threshold_ns;

// Returns true if waits are recorded. One load. Relaxed: pairs with the stores in Start and Stop. A wait that begins at
// the moment of Start or Stop may be recorded or not.
inline bool IsRecording() noexcept { return g_threshold_ns.load(std::memory_order_relaxed) != kOff; }

// Makes pthread_mutex_lock and pthread_mutex_unlock call the recording functions, or only the C library's. Start calls
// it before it turns recording on, Stop after it has turned it off: otherwise a wait could be recorded but not all
// releases during it, and the record could name a wrong holder. Defined in interpose.cc.
void CallRecorded(bool recorded) noexcept;

// A call that waits for a lock, from before the wait to its return. Requires that IsRecording() was true before.
class RecordedWait {
 public:
  // `holder`: LockWait::holder. `enters`: true enters the wait for IsAwaited, for locks whose own words do not show
  // that threads wait. `mutex`: that of a condition.
  RecordedWait(const void* lock, LockKind kind, uint32_t holder, bool enters, const void* mutex = nullptr) noexcept;
  // Also runs if the thread is cancelled in the call; then there is no record.
  ~RecordedWait();
  RecordedWait(const RecordedWait&) = delete;
  RecordedWait& operator=(const RecordedWait&) = delete;

  // The call has returned: writes the record if the wait was long enough and within one recording. `timeout_ns`: of
  // CLOCK_MONOTONIC, if it has ended the wait for a condition; else 0. Preserves errno.
  void End(bool acquired, uint64_t timeout_ns = 0) noexcept;

 private:
  uint64_t SignalledNs(uint64_t timeout_ns) const noexcept;

  const void* const lock_;
  const bool enters_;
  const uint32_t recording_;  // The number of the recording in which the wait began.
  LockWait wait_;
  uint32_t releases_before_ = 0;  // Release::count when the wait began
};

// Returns true if there are RecordedWaits with `enters` for this lock, or for one with the same entry in the table.
bool IsAwaited(const void* lock) noexcept;
// Notes that thread `tid`, 0 for the calling one, is about to release, signal or post the lock. Does nothing if waits
// are not recorded. Async-signal-safe.
void NoteRelease(const void* lock, uint32_t tid = 0) noexcept;

}  // namespace perfkit::sys::locks
