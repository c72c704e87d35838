// Child processes that wait between fork and exec until they are released, so that counters can be attached first.
//
//   parent                                 child
//   HoldChild: fork ────────────────────▶  waits for a byte on `release`
//   (attach events to pid)
//   ReleaseChild: writes the byte ──────▶  exec; the kernel closes `report` when that succeeds
//   reads `report`: end, or an errno  ◀──  exec failed: writes the errno, exits
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "src/sys/fd.h"

namespace perfkit::sys {

// A child that has not called exec yet. Either kill and reap it, or release it and wait for it.
struct HeldChild {
  pid_t pid = -1;
  std::string program;
  OwnedFd release_reader;  // Kept open here too, so that writing to a child that was killed raises no SIGPIPE.
  OwnedFd release;
  OwnedFd report;
};

// Forks a child that will run `argv` (argv[0] is looked up in PATH). Errors: InvalidArgument for an empty argv;
// ResourceExhausted and others by errno.
absl::StatusOr<HeldChild> HoldChild(std::span<const std::string> argv);

// Releases the child, and waits until its exec has succeeded or failed. Returns 0, or the errno of the failure: ENOENT
// also if execvp says EACCES only because a folder of PATH is not accessible to this user.
int ReleaseChild(HeldChild& child);

// How a process ended: with an exit code, or by a signal (0 means by itself).
struct ProcessEnd {
  int code = 0;
  int signal = 0;
  uint64_t cpu_ns = 0;  // CPU time of the process and of its children that it has waited for.
};

// Waits until `pid` has ended. Errors: by errno.
absl::StatusOr<ProcessEnd> WaitFor(pid_t pid);

// Ends a child by SIGKILL, and waits until it has ended.
void KillAndReap(pid_t pid);

}  // namespace perfkit::sys
