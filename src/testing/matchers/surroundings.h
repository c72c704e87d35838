// What the environment says to the matchers: which machine this is, and what must be measurable here.
#pragma once

#include <string>
#include <string_view>

#include "perfkit/testing.h"

namespace perfkit::matchers {

// PERFKIT_MACHINE, else the host's name.
std::string ThisMachine();

// Whether PERFKIT_REQUIRE ("all", or names separated by commas) names `event`.
bool IsRequired(std::string_view event);

// An unmeasurable verdict about `event`.
Verdict Unmeasurable(const EventType& event, const std::string& reason);

// The cost of `event`, or a verdict that says why there is none: it was not asked for (fail), or not measurable.
const Cost* FindMeasured(const Measurement& measurement, const EventType& event, Verdict& why_not);

}  // namespace perfkit::matchers
