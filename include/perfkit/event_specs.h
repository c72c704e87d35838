// The events of options: a list of EventSpec. Apart from event_type.h, which costs less compile time without a vector.
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
