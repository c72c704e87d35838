// Tracepoints, "group:name": static probes of the kernel, numbered under tracefs.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "perfkit/tracepoint.h"

namespace perfkit::event {

// Where tracefs is: as `roots` says, else by proc's mounts. NotFound when it is not mounted, with the remedy.
absl::StatusOr<std::string> TracefsFolder(const EventRoots& roots);

// Whether tracefs has such a group. False when it cannot be looked up.
bool IsTracepointGroup(std::string_view group, const EventRoots& roots);

// Whether the tracepoints of `group` are raised in kernel code: with exclude_kernel they open and count 0. All but the
// per-system-call ones are (kernel/trace/trace_syscalls.c gives those user registers; raw_syscalls has no such way).
bool IsKernelSideGroup(std::string_view group);

// Fills in the tracepoint `group`:`name`, both views into `whole`. NotFound with the nearest ones, or when tracefs is
// not mounted; PermissionDenied when this user may not look.
absl::Status FillTracepoint(std::string_view whole, std::string_view group, std::string_view name,
                            const EventRoots& roots, EventConfig& config);

// The format file of an event that is one. InvalidArgument when it is none, or was written without its name; else as
// FillTracepoint.
absl::StatusOr<TracepointFormat> ReadFormat(const EventConfig& event, const EventRoots& roots);

// Groups, and the names in one; sorted; empty when there are none to see.
std::vector<std::string> TracepointGroups(const std::string& tracefs);
std::vector<std::string> TracepointNames(const std::string& tracefs, const std::string& group);

// "group:name" of the tracepoints with that name, in all groups.
std::vector<std::string> TracepointsNamed(std::string_view name, const EventRoots& roots);

}  // namespace perfkit::event
