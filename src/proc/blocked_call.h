// What a blocked thread is blocked in: /proc/PID/task/TID/syscall (fs/proc/base.c, proc_pid_syscall).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

// How often the thread has been put on a CPU: the third number of /proc/self/task/TID/schedstat. nullopt if the kernel
// does not tell (CONFIG_SCHED_INFO).
std::optional<uint64_t> ReadTimesRun(pid_t tid);

}  // namespace perfkit::proc
