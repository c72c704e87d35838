// The environment variables of the ITT collector.
//
//   INTEL_LIBITTNOTIFY64      the path of libperfkit_itt.so: ittnotify's own variable, which loads the collector
//   PERFKIT_ITT               the file for the table; "%p" becomes the process's number; stderr if it is not set. A
//                             relative path starts at the working directory at the first ITT call
//   PERFKIT_ITT_COUNTERS      the events, as perf writes them; without it
//                             task-clock,page-faults,context-switches,instructions
//   PERFKIT_ITT_FORWARD_ONLY  unless it is 0, false, no, off or empty, there is no table, and nothing is counted
//                             (src/itt/forward.h)
#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "perfkit/event_specs.h"

namespace perfkit::itt {

struct Settings {
  std::string path;  // "" means stderr.
  EventSpecs events;
};

// Errors: InvalidArgument with the variable and its value if the list of events has a misplaced brace or comma. A wrong
// name is no error here: the report has its reason.
absl::StatusOr<Settings> ReadSettings(absl::FunctionRef<const char*(const char*)> variable, int pid);

}  // namespace perfkit::itt
