// Looks at a blocked thread of this process: reads its stack and what it waits for, without a signal.
//
//   /proc/self/task/TID/schedstat ──> times that it has run
//   /proc/self/task/TID/syscall ──> sp, pc, system call     the thread sleeps: its stack does not change
//   copy from sp on ──> walk ──> frames
//   both files again: unchanged?                            else the thread ran meanwhile, and the frames are dropped
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
  std::string wait;  // What it waits for, as text (sys::DescribeCall).
  // The thread that holds the lock, if the system call waits for one. Not proven yet: callers check the stack with
  // ProvesLock (lock_holder.h).
  std::optional<uint32_t> holder{};
  uint64_t at_ns = 0;  // CLOCK_MONOTONIC: the thread was off its CPU then
  uint64_t times_run = 0;

  // Returns true if the thread has not run since the look, and `holder` is what it was.
  bool IsUnchanged(uint32_t tid) const;
};

// Returns nullopt if the thread runs, ran meanwhile, or may not be looked at; the content of `frames` is then
// meaningless. Without an unwinder, or if that finds no frame, the stack is one frame: the thread's pc. Requires room
// for at least one frame.
std::optional<BlockedThread> LookAtBlocked(uint32_t pid, const proc::ThreadFiles& files, StackUnwinder* unwinder,
                                           std::span<StackFrame> frames);

}  // namespace perfkit::session
