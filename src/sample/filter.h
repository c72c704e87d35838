// Filters of tracepoints, checked against the tracepoint's fields before the kernel gets them.
//
//   prev_pid == 0 && (prev_comm ~ kworker* || !(next_prio < 120))     the input
//   prev_pid == 0 && (prev_comm ~ "kworker*" || !(next_prio < 120))   the result: the kernel requires quoted texts
//
// The kernel itself rejects a wrong filter with EINVAL, without a reason that an ordinary user could read.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "perfkit/tracepoint.h"

namespace perfkit::sample {

// Returns `filter` in the kernel's form; "" for "". Errors: InvalidArgument if the event is not a tracepoint, if the
// filter is malformed, or if it names an unknown field or compares a field in a way that its type does not allow. The
// message has the position, and the most similar names of fields.
absl::StatusOr<std::string> CheckFilter(const EventConfig& event, std::string_view filter, const EventRoots& roots);

// As above, for a known format.
absl::StatusOr<std::string> CheckFilter(const TracepointFormat& format, std::string_view filter);

}  // namespace perfkit::sample
