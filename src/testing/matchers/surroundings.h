// What the environment says to the matchers: the machine, and the events that must be measurable here.
#pragma once

#include <string>
#include <string_view>

#include "perfkit/testing.h"

namespace perfkit::matchers {

// Returns PERFKIT_MACHINE, or else the host's name.
std::string ThisMachine();

// Returns true if PERFKIT_REQUIRE ("all", or names separated by commas) names `event`.
bool IsRequired(std::string_view event);

// Returns an unmeasurable verdict about `event`, which is required also if PERFKIT_REQUIRE misspells it.
Verdict Unmeasurable(const EventType& event, const std::string& reason);

// Returns the cost of `event`, or nullptr with a verdict: fail if it was not requested, or unmeasurable.
const Cost* FindMeasured(const Measurement& measurement, const EventType& event, Verdict& why_not);

}  // namespace perfkit::matchers
