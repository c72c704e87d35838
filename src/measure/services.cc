// Files and the host's name by src/sys, names of events by src/event.
#include "src/measure/services.h"

#include <algorithm>

#include "absl/status/status.h"
#include "perfkit/event.h"
#include "perfkit/measured_events.h"
#include "src/base/nearest.h"
#include "src/base/text.h"
#include "src/event/event_table.h"
#include "src/sys/edit_file.h"
#include "src/sys/files.h"
#include "src/sys/regular_file.h"

namespace perfkit::detail {

absl::StatusOr<std::string> ReadTextFile(const std::string& path) { return sys::ReadRegularFile(path); }

absl::Status EditTextFile(const std::string& path,
                          const std::function<absl::StatusOr<std::string>(const std::string& text)>& edit) {
  return sys::EditFile(path, edit);
}

std::string HostName() {
  const auto name = sys::ReadFile("/proc/sys/kernel/hostname");
  return name.ok() ? std::string(base::Trim(*name)) : "";
}

std::string_view CanonicalEventName(std::string_view name) {
  const event::TableEvent* const known = event::FindTableEvent(name);
  return known != nullptr ? known->type.name : name;
}

bool IsEventName(std::string_view name) {
  if (event::FindTableEvent(name) != nullptr || name == event::kSyscalls.name || name == "calls") return true;
  if (event::FindTableEvent(base::Cut(name, ':').first) != nullptr) return false;  // "cycles:u"
  return !absl::IsInvalidArgument(ParseEvent(name).status());
}

// The names of two events that differ by one letter have the same length: dTLB-loads, iTLB-loads.
bool IsMisprintOf(std::string_view typed, std::string_view name) {
  std::string dashed(typed);
  std::ranges::replace(dashed, '_', '-');
  const size_t distance = base::EditDistance(dashed, name);
  return typed != name && !typed.empty() && (distance == 0 || (distance == 1 && dashed.size() != name.size()));
}

}  // namespace perfkit::detail
