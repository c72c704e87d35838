// "Did you mean": the names that a mistyped one is compared with, and the sentence about the nearest.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "perfkit/event.h"

namespace perfkit::event {

// "; did you mean 'cycles', 'ref-cycles'?" with the nearest of `known`, or "" when none is near.
std::string DidYouMean(std::string_view typed, std::span<const std::string> known);

// As DidYouMean; when none is near, "; <there> a, b, c" with some of what there is ("" when there is nothing).
std::string DidYouMeanOr(std::string_view typed, std::span<const std::string> known, std::string_view there);

// What to answer to `name` where an event was expected: InvalidArgument with the nearest events, PMUs and tracepoints,
// or with what `name` is instead.
absl::Status UnknownEvent(std::string_view whole, std::string_view name, const EventRoots& roots);

}  // namespace perfkit::event
