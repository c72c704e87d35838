// The golden trees as roots for the event parser: other machines, on this one.
#pragma once

#include <string>

#include "perfkit/event.h"

namespace perfkit::testing {

// `machine`: a folder of tests/golden/sysfs. Tracepoints are those of tests/golden/tracefs.
inline EventRoots GoldenRoots(const std::string& machine) {
  const std::string golden = PERFKIT_TEST_DATA "/golden";
  return {.sysfs = golden + "/sysfs/" + machine, .tracefs = golden + "/tracefs", .proc = "/proc"};
}

// A virtual machine without a PMU.
inline EventRoots VmRoots() { return GoldenRoots("kvm_no_pmu"); }

// Returns the error text of an event that must be refused, or "parsed".
inline std::string RefusalOf(std::string_view text, const EventRoots& roots) {
  const absl::StatusOr<EventConfig> event = ParseEvent(text, roots);
  return event.ok() ? "parsed" : std::string(event.status().message());
}

}  // namespace perfkit::testing
