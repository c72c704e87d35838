// Blocks the signals. The kernel sends both to the writing thread, so they wait there for sigtimedwait: SIGPIPE from
// fs/pipe.c (pipe_write), SIGXFSZ from fs/read_write.c (generic_write_check_limits).
#include "src/sys/write_signals.h"

#include <errno.h>
#include <time.h>

#include <initializer_list>

#include "src/sys/kernel.h"

namespace perfkit::sys {

WriteSignalGuard::WriteSignalGuard() {
  sigset_t signals, pending;
  sigemptyset(&signals);
  sigemptyset(&raised_);
  for (const int signal : {SIGPIPE, SIGXFSZ}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &before_);
  sigpending(&pending);
  for (const int signal : {SIGPIPE, SIGXFSZ}) {
    if (sigismember(&pending, signal) == 0) sigaddset(&raised_, signal);
  }
}

WriteSignalGuard::~WriteSignalGuard() {
  const int error = errno;
  constexpr timespec kNow{};
  // Each call discards one signal; EAGAIN ends the loop if none is left.
  while (RetryInterrupted([&] { return ::sigtimedwait(&raised_, nullptr, &kNow); }) > 0) {
  }
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace perfkit::sys
