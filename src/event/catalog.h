// All events with a name on this machine, in the order of a listing: the generic table, PMUs, tracepoints.
//
// A name does not mean that the event works: src/doctor opens and counts each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "perfkit/event.h"
#include "perfkit/event_type.h"

namespace perfkit::event {

struct KnownEvent {
  std::string_view name;   // As ParseEvent accepts it: "cycles", "power/energy-pkg/", "sched:sched_switch".
  std::string_view alias;  // Another spelling, or "".
  EventCategory category = EventCategory::kHardware;
  std::string_view unit;       // "ns", "Joules", or "".
  std::string_view group;      // The PMU, or the tracepoint's group; "" for generic events.
  bool kernel_side = false;    // As EventConfig::kernel_side.
  bool cpu_wide_only = false;  // As EventConfig::cpu_wide_only.
};

// Calls `visit` with each event that has a name; its views are valid until `visit` returns. Leaves out what cannot be
// read (no sysfs, no tracefs, no rights).
void ForEachKnownEvent(const EventRoots& roots, absl::FunctionRef<void(const KnownEvent&)> visit);

// A PMU with its terms and events, for listings: "cpu/event=0x3c,umask=1/".
struct KnownPmu {
  std::string name;
  uint32_t type = 0;
  bool core = false;
  bool cpu_wide_only = false;
  std::vector<std::string> terms;   // Names of formats.
  std::vector<std::string> events;  // Names of events.
};

// Calls `visit` with each PMU whose files are valid.
void ForEachKnownPmu(const EventRoots& roots, absl::FunctionRef<void(const KnownPmu&)> visit);

}  // namespace perfkit::event
