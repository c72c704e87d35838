// Filters of tracepoints: checked against the tracepoint's fields before the kernel sees them.
//
//   prev_pid == 0 && (prev_comm ~ kworker* || !(next_prio < 120))     what people write
//   prev_pid == 0 && (prev_comm ~ "kworker*" || !(next_prio < 120))   what the kernel wants: texts in quotes
//
// The kernel's own answer to a wrong filter is EINVAL, with the reason in a file that nobody may read.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "perfkit/tracepoint.h"

namespace perfkit::sample {

// `filter` as the kernel wants it; "" for "". InvalidArgument: the event is no tracepoint, or the filter is none, names
// a field that the tracepoint has not, or compares what cannot be compared: with the place, and the nearest fields.
absl::StatusOr<std::string> CheckFilter(const EventConfig& event, std::string_view filter, const EventRoots& roots);

// The same, for a format that is at hand.
absl::StatusOr<std::string> CheckFilter(const TracepointFormat& format, std::string_view filter);

}  // namespace perfkit::sample
