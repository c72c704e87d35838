// What a blocked thread is blocked in: /proc/PID/task/TID/syscall (fs/proc/base.c, proc_pid_syscall).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace perfkit::proc {

struct BlockedCall {
  int32_t syscall = -1;  // -1: blocked outside of a system call
  std::array<uint64_t, 6> arguments{};
  uint64_t sp = 0, pc = 0;

  bool operator==(const BlockedCall&) const = default;
};

// nullopt: "running", or nothing that is known.
std::optional<BlockedCall> ParseBlockedCall(std::string_view text);

// A thread of this process. nullopt if it runs, has ended, or may not be looked at.
std::optional<BlockedCall> ReadBlockedCall(pid_t tid);

// OK, or why ReadBlockedCall says nothing of any thread: PermissionDenied in a process that is not dumpable, for /proc
// then belongs to root; NotFound if the kernel has no such file (CONFIG_HAVE_ARCH_TRACEHOOK).
absl::Status CanReadBlockedCalls();

// How often a thread has run, by its schedstat file ("1234 567 89": the third number) or, where that says nothing, by
// the two counts of switches in its status file. nullopt: the text does not tell. A thread that is there has run once:
// kernels that do not count (sched_info_on) say 0.
std::optional<uint64_t> ParseTimesRun(std::string_view schedstat);
std::optional<uint64_t> ParseSwitches(std::string_view status);

// How often a thread of this process has been put on a CPU. It changes whenever the thread runs. nullopt if it has
// ended.
std::optional<uint64_t> ReadTimesRun(pid_t tid);

// Whether the state in a thread's stat file ("12 (name) R …") says that it runs or waits for a CPU. Its name may hold
// any character.
bool ParseRunnable(std::string_view stat);
// A thread of this process. false if it has ended.
bool IsRunnable(pid_t tid);

}  // namespace perfkit::proc
