// System calls of signal handlers.
#include "src/sys/handler_calls.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/base/in_handler.h"
#include "src/base/sanitizers.h"
#include "src/sys/perf_abi.h"

namespace perfkit::sys {
namespace {

PERFKIT_IN_HANDLER int Read(clockid_t clock, timespec* now) {
#if PERFKIT_SANITIZED
  return static_cast<int>(::syscall(SYS_clock_gettime, clock, now));
#else
  return ::clock_gettime(clock, now);
#endif
}

}  // namespace

PERFKIT_IN_HANDLER pid_t HandlerTid() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

// Signal 0 sends nothing, and only asks whether the thread is there (man kill). Other errors than ESRCH say yes.
PERFKIT_IN_HANDLER bool HandlerThreadExists(pid_t tid) {
  const int before = errno;
  const bool ended = ::syscall(SYS_tgkill, ::syscall(SYS_getpid), tid, 0) != 0 && errno == ESRCH;
  errno = before;
  return !ended;
}

PERFKIT_IN_HANDLER bool HandlerIsSet(int signal) {
  struct {
    void* handler = nullptr;
    unsigned long flags = 0;
    void* restorer = nullptr;
    uint64_t mask = 0;
  } now;  // struct sigaction of the kernel
  const int before = errno;
  const bool known = ::syscall(SYS_rt_sigaction, signal, nullptr, &now, sizeof(now.mask)) == 0;
  errno = before;
  return known && now.handler != reinterpret_cast<void*>(SIG_DFL) && now.handler != reinterpret_cast<void*>(SIG_IGN);
}

PERFKIT_IN_HANDLER void HandlerDisableEvent(int fd) { (void)::syscall(SYS_ioctl, fd, kIocDisable, 0); }

PERFKIT_IN_HANDLER uint64_t HandlerNow(clockid_t clock) {
  timespec now;
  if (Read(clock, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace perfkit::sys
