// Reads each variable, with a default value, and refuses a list that cannot be split.
#include "src/itt/library/settings.h"

#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/event.h"
#include "src/base/variables.h"

namespace perfkit::itt {
namespace {

constexpr char kPath[] = "PERFKIT_ITT", kCounters[] = "PERFKIT_ITT_COUNTERS";

}  // namespace

absl::StatusOr<Settings> ReadSettings(absl::FunctionRef<const char*(const char*)> variable, int pid) {
  Settings settings;
  settings.path = base::VariableOr(variable, kPath, "");
  base::ExpandPid(settings.path, pid);
  const std::string_view list =
      base::VariableOr(variable, kCounters, "task-clock,page-faults,context-switches,instructions");
  absl::StatusOr<std::vector<std::string>> events = SplitEventList(list);
  if (!events.ok()) {
    return absl::Status(absl::StatusCode::kInvalidArgument,
                        absl::StrFormat("%s is \"%s\": %s. Remedy: names of events, separated by commas", kCounters,
                                        list, events.status().message()));
  }
  for (std::string& event : *events) settings.events.emplace_back(std::move(event));
  return settings;
}

}  // namespace perfkit::itt
