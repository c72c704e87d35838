// Generic events by the names that a core's own PMU gives them.
#pragma once

#include "perfkit/event.h"
#include "src/event/pmu.h"

namespace perfkit::event {

// Fills in `part.own_type` and `own_config` for the generic event that `part` is, on `pmu`, where that PMU names an
// event that is the same to the kernel. `type` and `config` are as in perf_event_attr, without the PMU's number.
void FillOwnEvent(const Pmu& pmu, uint32_t type, uint64_t config, EventConfig::Part& part);

}  // namespace perfkit::event
