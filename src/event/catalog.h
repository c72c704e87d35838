// Everything that can be named on this machine, in the order of a listing: the generic table, PMUs, tracepoints.
//
// It says what has a name, not what works: whoever lists for users opens and counts each (src/doctor).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/event.h"
#include "perfkit/event_type.h"

namespace perfkit::event {

struct KnownEvent {
  std::string_view name;   // as ParseEvent takes it: "cycles", "power/energy-pkg/", "sched:sched_switch"
  std::string_view alias;  // another spelling, or ""
  EventCategory category = EventCategory::kHardware;
  std::string_view unit;       // "ns", "Joules", or ""
  std::string_view group;      // the PMU, or the tracepoint's group; "" for generic events
  bool kernel_side = false;    // see EventConfig
  bool cpu_wide_only = false;  // see EventConfig
};

// Calls `visit` with each event that has a name; its views die when `visit` returns. What cannot be read (no sysfs,
// no tracefs, no rights) is left out.
void ForEachKnownEvent(const EventRoots& roots, absl::FunctionRef<void(const KnownEvent&)> visit);

// A PMU and what it lets people write, for listings: "cpu/event=0x3c,umask=1/".
struct KnownPmu {
  std::string name;
  uint32_t type = 0;
  bool core = false;
  bool cpu_wide_only = false;
  std::vector<std::string> terms;   // formats
  std::vector<std::string> events;  // named events
};

// Calls `visit` with each PMU whose files make sense.
void ForEachKnownPmu(const EventRoots& roots, absl::FunctionRef<void(const KnownPmu&)> visit);

}  // namespace perfkit::event
