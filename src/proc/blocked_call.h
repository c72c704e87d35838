// The call in which a blocked thread waits: /proc/PID/task/TID/syscall (fs/proc/base.c, proc_pid_syscall).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "src/sys/fd.h"

namespace perfkit::proc {

// Where a thread is blocked. The registers are those of user space, to which the kernel will return.
struct BlockedCall {
  int32_t syscall = -1;                 // Number of the system call; -1 means blocked outside of a system call.
  std::array<uint64_t, 6> arguments{};  // All 0 outside of a system call.
  uint64_t sp = 0, pc = 0;

  bool operator==(const BlockedCall&) const = default;
};

// Returns nullopt for "running" and for unknown text.
std::optional<BlockedCall> ParseBlockedCall(std::string_view text);

// Reads the call of a thread of this process. Returns nullopt if it runs, has ended, or may not be read.
std::optional<BlockedCall> ReadBlockedCall(pid_t tid);

// Returns OK, or why ReadBlockedCall fails for each thread, with the remedy: PermissionDenied in a process that is not
// dumpable, because /proc then belongs to root, and if a seccomp filter refuses the file; NotFound if the kernel has no
// such file (CONFIG_HAVE_ARCH_TRACEHOOK); ResourceExhausted without a descriptor.
absl::Status CanReadBlockedCalls();

// Return how often a thread has run: the third number of its schedstat file ("1234 567 89"), and the sum of the two
// counts of switches in its status file. Return nullopt for other text, ParseTimesRun also for 0: a thread that exists
// has run once, but kernels without these counts (sched_info_on) say 0.
std::optional<uint64_t> ParseTimesRun(std::string_view schedstat);
std::optional<uint64_t> ParseSwitches(std::string_view status);

// Returns how often a thread of this process has been put on a CPU; on kernels without schedstat, how often it has left
// one. Either number changes between two times that the thread was found blocked, if it ran in between. Returns nullopt
// if it has ended.
std::optional<uint64_t> ReadTimesRun(pid_t tid);

// The files of ReadBlockedCall and ReadTimesRun, for several reads: opening one takes longer than reading it. Once the
// thread has ended, ReadBlockedCall returns nullopt, also if a later thread has its id.
class ThreadFiles {
 public:
  ThreadFiles() = default;  // of no thread
  explicit ThreadFiles(pid_t tid);

  pid_t tid() const { return tid_; }
  std::optional<BlockedCall> ReadBlockedCall() const;
  std::optional<uint64_t> ReadTimesRun() const;

 private:
  pid_t tid_ = 0;
  sys::OwnedFd call_, times_;
};

// Returns the state in a thread's stat file ("12 (name) R …"): 'R' means that it runs or waits for a CPU (proc(5) has
// the others). Returns '?' if the text has none. The name may contain any character.
char ParseState(std::string_view stat);
// Returns the state of a thread of this process; '?' if it has ended.
char ReadState(pid_t tid);

}  // namespace perfkit::proc
