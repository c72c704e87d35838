// A look at a thread of this process that is blocked: its stack and what it waits for, without a signal.
//
//   /proc/self/task/TID/syscall ──> sp, pc, system call     the thread sleeps: its stack does not change
//   copy from sp on ──> walk ──> frames
//   both files again: the same, and not run in between?     else it has moved, and the frames are dropped
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "perfkit/stack_frame.h"
#include "src/proc/blocked_call.h"
#include "src/session/stack_hooks.h"

namespace perfkit::session {

struct BlockedThread {
  proc::BlockedCall call{};
  UnwoundStack stack{};
  std::string wait;    // what it waits for: sys::DescribeCall, with its files
  // The thread that holds the lock it waits for, if ProvesLock says so.
  std::optional<uint32_t> holder{};
  uint64_t at_ns = 0;  // CLOCK_MONOTONIC: the thread was off its CPU then
  uint64_t times_run = 0;

  // Returns true if the thread has not run since the look, and `holder` is what it was.
  bool IsUnchanged(uint32_t tid) const;
};

// nullopt if the thread runs, has moved meanwhile, or may not be looked at; then `frames` hold nothing of use.
// Without an unwinder the one frame is where the thread will go on.
std::optional<BlockedThread> LookAtBlocked(uint32_t pid, uint32_t tid, StackUnwinder* unwinder,
                                           std::span<StackFrame> frames);

}  // namespace perfkit::session
