// Opens the event once, without ever enabling it: whether the kernel takes the attr is the whole answer.
#include "src/doctor/try_open.h"

#include <utility>

namespace perfkit::doctor {

absl::Status TryToOpen(const sys::PerfEventAttr& attr, const open::TaskCpu& task_cpu, std::string asked,
                       const sys::Rights& rights) {
  open::OpenRequest request;
  request.attr = attr;
  request.pid = task_cpu.pid;
  request.cpu = task_cpu.cpu;
  request.may_restrict_to_user = false;
  request.kernel_side = true;  // A probe that includes the kernel's part is about that part.
  request.asked = std::move(asked);
  const absl::StatusOr<open::OpenedEvent> event = open::OpenEvent(request, rights);
  // Without inherit_thread it is another event, so OpenEvent's retry for old kernels is a refusal here.
  if (event.ok() && event->with_children)
    return absl::UnavailableError(request.asked + ": this kernel does not know it");
  return event.status();
}

sys::PerfEventAttr SoftwareAttr(uint64_t config, bool user_only) {
  sys::PerfEventAttr attr{};
  attr.type = sys::kTypeSoftware;
  attr.config = config;
  attr.exclude_kernel = attr.exclude_hv = user_only;
  return attr;
}

}  // namespace perfkit::doctor
