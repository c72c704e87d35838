// The retries of perf_event_open. Each turn of the loop gives up one thing of the attr. TakeOwn brings the optional
// bits back, but only once, so the loop ends. The first answer of the kernel is kept: it is what the user asked about.
#include "src/open/open_event.h"

#include <errno.h>

#include <utility>

#include "src/event/attr.h"
#include "src/open/breakpoint_check.h"
#include "src/open/explain.h"
#include "src/sys/kernel.h"

namespace perfkit::open {
namespace {

constexpr int kInterruptions = 16;

int TryOpen(const OpenRequest& request, const sys::PerfEventAttr& attr) {
  int fd = -1;
  for (int i = 0; i < kInterruptions; ++i) {
    fd = sys::kernel().perf_event_open(&attr, request.pid, request.cpu, request.group_fd, sys::kOpenFdCloexec);
    if (fd >= 0 || errno != EINTR) break;
  }
  return fd;
}

// Replaces a generic event of one kind of core by the PMU's own event, with the optional bits again. Returns false if
// the PMU has none, if it was replaced before, or if `error` has another cause.
bool TakeOwn(const OpenRequest& request, int error, sys::PerfEventAttr& attr) {
  if (request.own_type == 0 || attr.type == request.own_type || (error != EINVAL && error != ENOENT)) return false;
  attr.type = request.own_type;
  attr.config = request.own_config;
  attr.config1 = request.attr.config1 | request.optional_config1;
  return true;
}

}  // namespace

OpenRequest RequestFor(const EventConfig& event, size_t part) {
  OpenRequest request;
  request.attr = event::ToAttr(event, event.parts[part]);
  request.may_restrict_to_user = !event.privilege_given && !event.kernel_side;
  request.lower_precise = event.precise_max;
  request.own_type = event.parts[part].own_type;
  request.own_config = event.parts[part].own_config;
  request.kernel_side = event.kernel_side;
  request.pmu = event.parts[part].pmu;
  return request;
}

OpenRequest RequestForNothing(std::string asked) {
  OpenRequest request;
  request.attr.type = sys::kTypeSoftware;
  request.attr.config = sys::kSwDummy;
  request.attr.exclude_kernel = request.attr.exclude_hv = 1;  // Records and times are the same.
  request.asked = std::move(asked);
  return request;
}

absl::StatusOr<OpenedEvent> OpenEvent(const OpenRequest& request, const sys::LazyRights& rights) {
  sys::PerfEventAttr attr = request.attr;
  attr.config1 |= request.optional_config1;
  OpenedEvent opened;
  int first_error = 0;
  while (true) {
    attr.size = sys::AttrSize(attr);
    opened.fd = sys::OwnedFd(TryOpen(request, attr));
    if (opened.fd) {
      if (attr.type != sys::kTypeBreakpoint) return opened;
      if (absl::Status counted = CheckBreakpoints(request.asked); !counted.ok()) return counted;
      return opened;
    }
    const int error = errno;
    if (first_error == 0) first_error = error;
    if ((error == EACCES || error == EPERM) && request.may_restrict_to_user && attr.exclude_kernel == 0) {
      attr.exclude_kernel = attr.exclude_hv = 1;
      opened.user_only = true;
    } else if (error == EINVAL && attr.inherit_thread != 0) {
      attr.inherit_thread = 0;
      opened.with_children = true;
    } else if (error == EINVAL && attr.build_id != 0) {
      attr.build_id = 0;
    } else if (error == EOPNOTSUPP && request.lower_precise && attr.precise_ip > 0) {
      --attr.precise_ip;
    // The optional bits, if the attr has them now.
    } else if ((error == EINVAL || error == EOPNOTSUPP) && attr.config1 != request.attr.config1) {
      attr.config1 = request.attr.config1;
    } else if (!TakeOwn(request, error, attr)) {
      return Explain({request, attr, first_error, error}, rights.get());
    }
  }
}

}  // namespace perfkit::open
