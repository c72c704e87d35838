// Tracepoints, "group:name": static probes of the kernel, numbered under tracefs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "perfkit/tracepoint.h"

namespace perfkit::event {

// Returns the folder of tracefs: of `roots`, else by proc's mounts. Errors: NotFound, with the remedy, if it is not
// mounted.
absl::StatusOr<std::string> TracefsFolder(const EventRoots& roots);

// Returns true if tracefs has such a group; false also if it cannot be looked up.
bool IsTracepointGroup(std::string_view group, const EventRoots& roots);

// Returns true if the tracepoints of `group` are raised in kernel code: with exclude_kernel they open and count 0. All
// are, except those for each system call (kernel/trace/trace_syscalls.c gives these user registers; raw_syscalls does
// not).
bool IsKernelSideGroup(std::string_view group);

// Returns true if `event` is a tracepoint that may count more than 1 each time, such as sched:sched_stat_runtime, which
// counts nanoseconds (__perf_count, Linux 4.14 to 6.18). A tracepoint that is known by its number only may
// be one of these.
bool MayCountWeight(const EventConfig& event);

// Fills in the tracepoint `group`:`name`, both views into `whole`. Errors: NotFound with the nearest ones, or if
// tracefs is not mounted; PermissionDenied if this user may not read it.
absl::Status FillTracepoint(std::string_view whole, std::string_view group, std::string_view name,
                            const EventRoots& roots, EventConfig& config);

// Returns the format of a tracepoint event. Errors: InvalidArgument if it is none, or was written without its name;
// else as FillTracepoint.
absl::StatusOr<TracepointFormat> ReadFormat(const EventConfig& event, const EventRoots& roots);

// Return groups, and the names in one group; sorted; empty if none are visible.
std::vector<std::string> TracepointGroups(const std::string& tracefs);
std::vector<std::string> TracepointNames(const std::string& tracefs, const std::string& group);

// Returns "group:name" for each tracepoint with that name, in all groups.
std::vector<std::string> TracepointsNamed(std::string_view name, const EventRoots& roots);

}  // namespace perfkit::event
