// One perf_event_open with the retries that hide what can be hidden, and nothing else.
//
// The ladder, from what was asked downwards; each rung only where it does not change the meaning, or says that it did:
//   EINTR                                   again, a bounded number of times
//   EACCES, EPERM                           without the kernel's part (exclude_kernel), unless the user said whose
//   EINVAL with inherit_thread              without it, on kernels before 5.13
//   EINVAL with build_id                    without it, on kernels before 5.12: records name files by their numbers
//   EOPNOTSUPP, "as precise as can be"      one step less precise
//   EINVAL, EOPNOTSUPP with optional bits   without them
//   EINVAL, ENOENT for one kind of core     the same by the code that its PMU has for it
//   (EventConfig::Part::own_config)
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "src/sys/fd.h"
#include "src/sys/perf_abi.h"
#include "src/sys/rights.h"

namespace perfkit::open {

struct OpenRequest {
  sys::PerfEventAttr attr{};
  pid_t pid = 0;  // 0: the calling thread; -1: every task (with cpu)
  int cpu = -1;
  int group_fd = -1;
  bool may_restrict_to_user = true;  // whether the kernel's part may be left out when it is not permitted
  bool lower_precise = false;        // whether precise_ip is only an upper bound
  uint64_t optional_config1 =
      0;  // bits of config1 to add where the PMU takes them: they change how, not what, it counts
  // The same event as its PMU itself calls it; a type of 0: it has no such name.
  uint32_t own_type = 0;
  uint64_t own_config = 0;
  // For messages: what was asked for in the user's words, whether the kernel raises the event in its own code, and the
  // sysfs name of its PMU, a view into RequestFor's `event` ("": none).
  std::string asked;
  bool kernel_side = false;
  std::string_view pmu;
};

// A request for one part of `event`, with what its modifiers allow. What it is asked for, where, and how it is read is
// the caller's to add. `event` must outlive the request (event::ToAttr).
OpenRequest RequestFor(const EventConfig& event, size_t part);

struct OpenedEvent {
  sys::OwnedFd fd;
  bool user_only = false;      // counts user space only, though more was asked
  bool with_children = false;  // inherit_thread was refused: children of this process are in it too
};

// The event, or a PerfError that names what was asked, the cause here and the remedy (explain.h).
absl::StatusOr<OpenedEvent> OpenEvent(const OpenRequest& request, const sys::Rights& rights);

}  // namespace perfkit::open
