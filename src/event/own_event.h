// Maps generic events to the names that a core's own PMU has for them.
#pragma once

#include "perfkit/event.h"
#include "src/event/pmu.h"

namespace perfkit::event {

// Sets `part.own_type` and `own_config` to the event of `pmu` that the kernel uses for the generic event of `part`, if
// the PMU has a name for it. `type` and `config` are as in perf_event_attr, without the PMU's number.
void FillOwnEvent(const Pmu& pmu, uint32_t type, uint64_t config, EventConfig::Part& part);

}  // namespace perfkit::event
