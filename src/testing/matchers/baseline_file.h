// Baselines as a small JSON file for reviews and merges: names, events, backends, numbers.
//
//   {
//     "find42": {
//       "instructions": {"stepper": 1180},
//       "cycles": {"perf, user page @build-7": 2400}
//     }
//   }
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace perfkit::matchers {

using ByBackend = std::map<std::string, int64_t>;
using ByEvent = std::map<std::string, ByBackend>;
using Baselines = std::map<std::string, ByEvent>;

// Parses `text`, which must have the form above, with each name once in its object. Errors: InvalidArgument with the
// line.
absl::StatusOr<Baselines> ParseBaselines(std::string_view text);
std::string FormatBaselines(const Baselines& baselines);

// Returns the file's baselines; none if there is no file. Errors: as ParseBaselines; FailedPrecondition if it is not a
// regular file.
absl::StatusOr<Baselines> ReadBaselines(const std::string& path);

// Replaces entry `name`, for each event and backend, under a lock on the file: tests may run in parallel.
absl::Status UpdateBaseline(const std::string& path, const std::string& name, const ByEvent& entry);

}  // namespace perfkit::matchers
