// "Did you mean": finds the known names nearest to a mistyped one, and composes the sentence.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "perfkit/event.h"

namespace perfkit::event {

// Returns "; did you mean 'cycles', 'ref-cycles'?" with the nearest of `known`, or "" if none is near.
std::string DidYouMean(std::string_view typed, std::span<const std::string> known);

// As DidYouMean. If none is near, returns "; <there> a, b, c" with some of the known names ("" if there are none).
std::string DidYouMeanOr(std::string_view typed, std::span<const std::string> known, std::string_view there);

// Returns the error for a `name` that is no event: InvalidArgument with the nearest events, PMUs and tracepoints, or
// with what `name` is instead.
absl::Status UnknownEvent(std::string_view whole, std::string_view name, const EventRoots& roots);

}  // namespace perfkit::event
