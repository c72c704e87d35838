// Compares device and inode of the pipe with those at the start.
#include "src/sys/descriptor_check.h"

#include <errno.h>
#include <fcntl.h>

#include <utility>

#include "src/sys/files.h"

namespace perfkit::sys {
namespace {

// The table of system calls in a forked child that has no descriptors of perfkit.
constinit Kernel g_without_close{};

}  // namespace

absl::StatusOr<OwnedFd> DescriptorCheck::OpenFirst() {
  int ends[2];
  if (kernel().pipe2(ends, O_CLOEXEC) != 0) {
    return WithDescriptorRemedy(absl::ErrnoToStatus(errno, "cannot open a pipe"));
  }
  const OwnedFd writer(ends[1]);
  return OwnedFd(ends[0]);
}

DescriptorCheck::DescriptorCheck(OwnedFd first)
    : first_(std::move(first)), last_(kernel().fcntl(first_.get(), F_DUPFD_CLOEXEC, 0)) {
  kernel().fstat(first_.get(), &pipe_);
}

bool DescriptorCheck::passes() const { return IsPipe(first_) && (!last_ || IsPipe(last_)); }

bool DescriptorCheck::IsPipe(const OwnedFd& fd) const {
  struct stat now {};
  return kernel().fstat(fd.get(), &now) == 0 && now.st_dev == pipe_.st_dev && now.st_ino == pipe_.st_ino;
}

// The listeners of the session close its descriptors by number. If these are files of the program, no call may close
// them.
void DescriptorCheck::OnForkedChild(void* check) {
  auto* const self = static_cast<DescriptorCheck*>(check);
  if (self->passes()) {
    self->first_.Reset();
    self->last_.Reset();
    return;
  }
  g_without_close = kLinux;
  g_without_close.close = [](int) { return 0; };
  ExchangeKernel(&g_without_close);
}

}  // namespace perfkit::sys
