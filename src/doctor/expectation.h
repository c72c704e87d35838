// Which piece of work must move which event: one table.
#pragma once

#include <string_view>

#include "perfkit/event_type.h"
#include "src/doctor/workload.h"

namespace perfkit::doctor {

// The part of the workload that is sure to move the event of this canonical name, whatever the machine. kNothing where
// an honest 0 is possible: no faulty alignment, no task of another cgroup, a cache that holds everything.
Work WorkThatMoves(EventCategory category, std::string_view name);

}  // namespace perfkit::doctor
