// One perf_event_open, with retries.
//
// Each retry asks for less than the one before. It is made only if it does not change the meaning, or if the result
// says that it did:
//   EINTR                                   again, a bounded number of times
//   EACCES, EPERM                           without the kernel's part (exclude_kernel), unless the user chose it
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
  pid_t pid = 0;  // 0 means the calling thread; -1 means all tasks (with cpu).
  int cpu = -1;
  int group_fd = -1;
  bool may_restrict_to_user = true;  // True if the kernel's part may be left out when it is not permitted.
  bool lower_precise = false;        // True if precise_ip is only an upper bound.
  uint64_t optional_config1 =
      0;  // Bits of config1 to add if the PMU accepts them: they change how it counts, not what.
  // The same event by its PMU's own numbers; type 0 means that there is none.
  uint32_t own_type = 0;
  uint64_t own_config = 0;
  // For messages: the request in the user's words, whether the kernel raises the event in its own code, and the sysfs
  // name of its PMU, a view into RequestFor's `event` ("" means none).
  std::string asked;
  bool kernel_side = false;
  std::string_view pmu;
};

// Returns a request for one part of `event` with its modifiers. The caller adds the target and how the event is read.
// `event` must outlive the request (event::ToAttr).
OpenRequest RequestFor(const EventConfig& event, size_t part);

// Returns a request for an event of this thread that counts nothing: for its page, its time, or its records. Every user
// may open it.
OpenRequest RequestForNothing(std::string asked);

struct OpenedEvent {
  sys::OwnedFd fd;
  bool user_only = false;      // Counts user space only, though more was requested.
  bool with_children = false;  // inherit_thread was refused: children of this process are counted too.
};

// Returns the event, or a PerfError with the request, the cause here and the remedy (explain.h). Reads the rights only
// for a PerfError. A breakpoint is Unavailable where the kernel opens it and counts none (breakpoint_check.h).
absl::StatusOr<OpenedEvent> OpenEvent(const OpenRequest& request, const sys::LazyRights& rights);

}  // namespace perfkit::open
