// Waits for a descriptor, for a time, or for a wake-up from another thread.
#pragma once

#include "absl/status/statusor.h"
#include "src/sys/fd.h"

namespace perfkit::sys {

class Waiter {
 public:
  // `fd` must outlive the waiter; -1 means none. Errors: by errno.
  static absl::StatusOr<Waiter> Open(int fd = -1);

  // Returns when `fd` is readable, after Wake, or after `timeout_ms`. One thread at a time. If the program has closed
  // the waiter's descriptors, sleeps for `timeout_ms`, at most 100 ms.
  void Wait(int timeout_ms);
  // Ends the current Wait, or else the next one. Thread-safe; async-signal-safe.
  void Wake();
  // In a forked child: closes its copies of the descriptors. Async-signal-safe; the waiter can't be used afterwards.
  void Close();

 private:
  Waiter(OwnedFd epoll, OwnedFd reader, OwnedFd writer);

  OwnedFd epoll_, reader_, writer_;
};

}  // namespace perfkit::sys
