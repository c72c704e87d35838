// Blocks the signals of a failed write, so that it is an error and does not end the program.
#pragma once

#include <signal.h>

#include "src/sys/uncancelled.h"

namespace perfkit::sys {

// While one lives, a write of its thread to a pipe without a reader, or beyond RLIMIT_FSIZE, returns EPIPE or EFBIG and
// delivers no SIGPIPE or SIGXFSZ, whatever the program does with these signals. Construct and destroy it on one thread.
class WriteSignalGuard {
 public:
  WriteSignalGuard();
  // Discards what was raised since then, by a write, and restores the signal mask. Keeps a signal that was pending
  // before.
  ~WriteSignalGuard();
  WriteSignalGuard(const WriteSignalGuard&) = delete;
  WriteSignalGuard& operator=(const WriteSignalGuard&) = delete;

 private:
  const Uncancelled uncancelled_;  // sigtimedwait is a cancellation point.
  sigset_t before_;                // The mask to restore.
  sigset_t raised_;                // The signals to discard: those that were not pending before.
};

}  // namespace perfkit::sys
