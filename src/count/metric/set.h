// A set of metrics as texts, before they are parsed.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "src/event/pmu.h"

namespace perfkit::count {

struct MetricTexts {
  std::string events;
  std::vector<std::string> metrics;
};

// Returns the first level of top-down analysis for the CPU whose core PMUs are `cores`. Errors: Unavailable, with the
// reason.
absl::StatusOr<MetricTexts> TopdownLevel1(const std::vector<event::Pmu>& cores, const EventRoots& roots);

}  // namespace perfkit::count
