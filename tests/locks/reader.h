// The records of waits, read as a session reads them.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "src/proc/blocked_call.h"
#include "src/sys/clock.h"
#include "src/sys/lock_waits.h"

namespace perfkit::sys::locks {

inline uint32_t ThisThread() { return static_cast<uint32_t>(syscall(SYS_gettid)); }
inline uint64_t NowNs() { return ClockNs(CLOCK_MONOTONIC); }

// Records while it lives.
class Reader {
 public:
  explicit Reader(uint64_t threshold_ns = 0) : source_(*LockWaits()) { REQUIRE(source_.start(threshold_ns)); }
  ~Reader() { source_.stop(); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  // All records of this lock since the last call, or since the start; those of others are dropped.
  std::vector<LockWait> Of(const void* lock) {
    std::vector<LockWait> waits;
    for (LockWait wait; source_.take(wait);) {
      if (wait.lock == reinterpret_cast<uintptr_t>(lock)) waits.push_back(wait);
    }
    return waits;
  }
  uint64_t lost() const { return source_.lost(); }

 private:
  const LockWaitSource& source_;
};

// Waits until the thread sleeps in a futex within the `size` bytes of the lock. The thread must be about to.
inline void AwaitBlocked(uint32_t tid, const void* lock, size_t size) {
  const auto begin = reinterpret_cast<uintptr_t>(lock);
  for (;;) {
    const auto call = proc::ReadBlockedCall(static_cast<pid_t>(tid));
    if (call && call->syscall == SYS_futex && call->arguments[0] >= begin && call->arguments[0] < begin + size) return;
    usleep(100);
  }
}

}  // namespace perfkit::sys::locks
