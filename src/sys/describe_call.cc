// Has names for the calls in which threads usually sleep, and numbers for all others.
#include "src/sys/describe_call.h"

#include <sys/syscall.h>

#include "absl/strings/str_format.h"

namespace perfkit::sys {

std::string DescribeCall(int64_t syscall, std::span<const uint64_t, 6> arguments) {
  const auto descriptor = static_cast<int>(arguments[0]);
  switch (syscall) {
    case -1: return "outside of a system call";
    case SYS_futex: return absl::StrFormat("futex 0x%x", arguments[0]);
    case SYS_read: return absl::StrFormat("read of descriptor %d", descriptor);
    case SYS_write: return absl::StrFormat("write to descriptor %d", descriptor);
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return "sleep";
    case SYS_epoll_pwait: return absl::StrFormat("epoll descriptor %d", descriptor);
    case SYS_ppoll: return absl::StrFormat("poll of %d descriptors", arguments[1]);
    case SYS_wait4:
    case SYS_waitid: return "child process";
    case SYS_fsync:
    case SYS_fdatasync: return absl::StrFormat("fsync of descriptor %d", descriptor);
    case SYS_recvfrom:
    case SYS_recvmsg: return absl::StrFormat("receive on descriptor %d", descriptor);
    case SYS_sendto:
    case SYS_sendmsg: return absl::StrFormat("send on descriptor %d", descriptor);
    case SYS_accept:
    case SYS_accept4: return absl::StrFormat("accept on descriptor %d", descriptor);
    case SYS_rt_sigtimedwait: return "signal";
#if defined(SYS_epoll_wait)
    case SYS_epoll_wait: return absl::StrFormat("epoll descriptor %d", descriptor);
    case SYS_poll: return absl::StrFormat("poll of %d descriptors", arguments[1]);
    case SYS_select: return absl::StrFormat("select of %d descriptors", arguments[0]);
    case SYS_pause: return "signal";
#endif
    default: return absl::StrFormat("system call %d", syscall);
  }
}

}  // namespace perfkit::sys
