// What the environment says to the matchers: the machine, and the events that must be measurable here.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "perfkit/testing.h"

namespace perfkit::matchers {

// Returns PERFKIT_MACHINE, or else the host's name.
std::string ThisMachine();

// Returns an unmeasurable verdict about `event`. It is required if PERFKIT_REQUIRE ("all", or names separated by
// commas) names the event, by any of its names, or one of `also`, or if it has a word that is the name of no event.
Verdict Unmeasurable(const EventType& event, const std::string& reason, std::span<const std::string> also = {});

// Returns the cost of `event`, or nullptr with a verdict: fail if it was not requested, or unmeasurable. `also`: as
// above.
const Cost* FindMeasured(const Measurement& measurement, const EventType& event, Verdict& why_not,
                         std::span<const std::string> also = {});

// Returns true if `value`, a factor or a tolerance, is 0 or more; false if it is not a number. Infinity is one.
inline bool IsFactor(double value) { return value >= 0; }

}  // namespace perfkit::matchers
