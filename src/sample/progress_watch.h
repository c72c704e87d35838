// Notices threads that do not advance, because handling the signal of a sample takes until the next signal comes.
//
// Such a thread is interrupted at the same place again and again, and its signals are stale: each was sent while the
// handler of the one before it was running. Two causes: samples that are taken more often than the machine can deliver
// signals, and events that the handling of a signal makes happen, such as its own system calls (sigreturn). Handlers
// are then entered for ever, and not even SIGTERM ends the process, because it is delivered after SIGTRAP.
//
// A loop that has SIGTRAP blocked, except at one place where it unblocks it for a moment, looks the same if it gets a
// signal there every kMaxGapNs.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "src/base/in_handler.h"

namespace perfkit::sample {

// For handlers: async-signal-safe.
class ProgressWatch {
 public:
  static constexpr uint32_t kStaleSignals = 256;
  static constexpr uint64_t kMaxGapNs = 500'000;  // Signals of threads that do not advance were seen to take 200 us.

  // Notes a signal at `now_ns` that interrupted the calling thread, `tid`, at `pc` with stack pointer `sp`. Returns
  // true if the thread has had kStaleSignals stale ones there, at most kMaxGapNs apart, and none at another place; then
  // it counts anew.
  PERFKIT_IN_HANDLER bool IsStuck(pid_t tid, uint64_t pc, uint64_t sp, bool stale, uint64_t now_ns) {
    Interruption& last = last_[static_cast<uint32_t>(tid) % kSlots];
    if (last.tid != tid || last.pc != pc || last.sp != sp || now_ns - last.time_ns > kMaxGapNs) last.stale = 0;
    last.tid = tid;
    last.pc = pc;
    last.sp = sp;
    last.time_ns = now_ns;
    last.stale += stale ? 1 : 0;
    if (last.stale < kStaleSignals) return false;
    last.stale = 0;
    return true;
  }

 private:
  // Threads share an element if their ids are equal modulo kSlots. Each then resets the other's count.
  static constexpr size_t kSlots = 1024;
  struct Interruption {
    uint64_t pc, sp, time_ns;
    pid_t tid;
    uint32_t stale;
  };
  Interruption last_[kSlots] = {};
};

}  // namespace perfkit::sample
