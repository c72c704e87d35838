// Opens the variation, and closes it.
#include "src/open/variation.h"

#include <errno.h>
#include <string.h>

#include "src/sys/fd.h"
#include "src/sys/kernel.h"

namespace perfkit::open {

bool Variation::operator==(const Variation& other) const {
  return pid == other.pid && cpu == other.cpu && group_fd == other.group_fd &&
         memcmp(&attr, &other.attr, sizeof(attr)) == 0;
}

int Try(const Variation& variation) {
  constexpr int kInterruptions = 16;
  sys::PerfEventAttr attr = variation.attr;
  // Some PMUs check only enabled events when they test whether a group fits (drivers/perf/arm_pmu.c,
  // validate_event).
  if (variation.group_fd < 0) attr.disabled = 1;
  attr.enable_on_exec = 0;
  attr.size = sys::AttrSize(attr);
  for (int i = 0; i < kInterruptions; ++i) {
    const sys::OwnedFd fd(
        sys::kernel().perf_event_open(&attr, variation.pid, variation.cpu, variation.group_fd, sys::kOpenFdCloexec));
    if (fd) return 0;
    if (errno != EINTR) return errno;
  }
  return EINTR;
}

bool IsDenied(int error) { return error == EACCES || error == EPERM; }

Variation Dummy(pid_t pid) {
  Variation dummy{.attr = {}, .pid = pid, .cpu = -1, .group_fd = -1};
  dummy.attr.type = sys::kTypeSoftware;
  dummy.attr.config = sys::kSwDummy;
  dummy.attr.exclude_kernel = dummy.attr.exclude_hv = 1;
  return dummy;
}

}  // namespace perfkit::open
