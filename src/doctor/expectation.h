// Which piece of work must raise which event: one table.
#pragma once

#include <string_view>

#include "perfkit/event_type.h"
#include "src/doctor/workload.h"

namespace perfkit::doctor {

// Returns the part of the workload that must raise the event of this canonical name on any machine. Returns kNothing if
// a true 0 is possible: no misaligned access, no task of another cgroup, a cache that holds everything.
Work WorkThatRaises(EventCategory category, std::string_view name);

}  // namespace perfkit::doctor
