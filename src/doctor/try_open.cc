// Opens the event and closes it at once: whether the kernel accepts the attr is the whole answer.
#include "src/doctor/try_open.h"

#include <errno.h>

#include <utility>

#include "src/sys/perf_error.h"

namespace perfkit::doctor {

absl::Status TryToOpen(const sys::PerfEventAttr& attr, const open::TaskCpu& task_cpu, std::string asked,
                       const sys::Rights& rights) {
  open::OpenRequest request;
  request.attr = attr;
  request.pid = task_cpu.pid;
  request.cpu = task_cpu.cpu;
  request.may_restrict_to_user = false;
  request.kernel_side = true;  // For the error: a probe of the kernel's part must not advise to leave that part out.
  request.asked = std::move(asked);
  const absl::StatusOr<open::OpenedEvent> event = open::OpenEvent(request, rights);
  // Before Linux 5.13, OpenEvent opens the event without inherit_thread instead. That is not what was tried.
  if (event.ok() && event->with_children)
    return absl::UnavailableError(request.asked + ": this kernel does not know it");
  return event.status();
}

bool LacksDescriptor(const absl::Status& status) {
  const int error = sys::ErrnoOf(status);
  return error == EMFILE || error == ENFILE;
}

sys::PerfEventAttr SoftwareAttr(uint64_t config, bool user_only) {
  sys::PerfEventAttr attr{};
  attr.type = sys::kTypeSoftware;
  attr.config = config;
  attr.exclude_kernel = attr.exclude_hv = user_only;
  return attr;
}

}  // namespace perfkit::doctor
