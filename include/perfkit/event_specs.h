// The events of options: a list of EventSpec. In a header of its own, so that event_type.h need not include <vector>.
#pragma once

#include "perfkit/enable.h"

#if PERFKIT_ENABLE
#include <vector>

#include "perfkit/event_type.h"

namespace perfkit {

using EventSpecs = std::vector<EventSpec>;

}  // namespace perfkit
#else
#include "perfkit/off/event_specs.h"
#endif
