// The errors of each call, by its man page in section 2 (perf_event_open(2), mmap(2), ...), less those that only a defect of
// perfkit can cause: EBADF, EFAULT.
#pragma once

#include <errno.h>

#include <span>
#include <vector>

#include "tests/support/fake_kernel.h"

namespace perfkit::testing {

// Returns the errors with which `call` may fail, and the ways in which it does less than asked.
inline std::vector<int> ErrorsOf(Call call) {
  switch (call) {
    case Call::kPerfEventOpen:
      return {EACCES, EPERM,  EBUSY,  EINVAL, ENODEV,     ENOENT, ENOSPC, EMFILE,
              ENFILE, ENOMEM, E2BIG,  ESRCH,  EOPNOTSUPP, ENOSYS, EINTR};
    case Call::kIoctl: return {EINVAL, ENOTTY, EBUSY, ENOMEM, EINTR};
    case Call::kRead: return {EINTR, EIO, ENOSPC, FakeKernel::kHalf, FakeKernel::kEnd};
    case Call::kWrite: return {EINTR, EIO, ENOSPC, EDQUOT, FakeKernel::kHalf};
    case Call::kClose: return {EINTR, EIO, ENOSPC};
    case Call::kMmap: return {EPERM, ENOMEM, EAGAIN, ENFILE, EINVAL, EACCES};
    case Call::kMunmap: return {EINVAL, ENOMEM};
    case Call::kOpen: return {EACCES, ENOENT, EMFILE, ENFILE, EINTR, ENOMEM, ELOOP, EIO};
    case Call::kFstat: return {ENOMEM, EOVERFLOW, EIO};
    case Call::kFchmod: return {EPERM, EROFS, EIO};
    case Call::kRename: return {EACCES, ENOSPC, EROFS, EXDEV};
    case Call::kUnlink: return {EACCES, EBUSY, EROFS};
    case Call::kFcntl: return {EMFILE, EINVAL, EAGAIN};
    case Call::kPipe: return {EMFILE, ENFILE};
    case Call::kClockGettime: return {EINVAL};
    case Call::kNanosleep: return {EINTR};
    case Call::kGetrusage: return {EINVAL};
    case Call::kGetrlimit: return {EINVAL};
    case Call::kFork: return {EAGAIN, ENOMEM};
    case Call::kExec: return {ENOENT, EACCES, ENOEXEC, ENOMEM, E2BIG};
    case Call::kWait: return {EINTR, ECHILD};
    case Call::kKill: return {ESRCH, EPERM};
    case Call::kSigaction: return {EINVAL};
    case Call::kSigprocmask: return {EINVAL};
    case Call::kEpollCreate: return {EMFILE, ENFILE, ENOMEM};
    case Call::kEpollCtl: return {ENOMEM, ENOSPC, EPERM};
    case Call::kEpollWait: return {EINTR};
    case Call::kAny:
    case Call::kCount: break;
  }
  return {};
}

}  // namespace perfkit::testing
