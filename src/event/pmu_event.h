// Events of PMUs under sysfs: "cpu/event=0x3c,umask=1/", "power/energy-pkg/", "uncore_imc/cas_count_read/", or just
// "energy-pkg".
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/event.h"

namespace perfkit::event {

// Fills in `terms` on PMU `name`, both views into `whole`. The name stands for all instances of an uncore unit:
// "uncore_imc", or "imc", for uncore_imc_0, uncore_imc_1 (one part each), as in perf.
// NotFound when there is no such PMU; InvalidArgument for terms that it has not; FailedPrecondition when its files in
// sysfs make no sense. Each says what is near.
absl::Status FillPmuEvent(std::string_view whole, std::string_view name, std::string_view terms,
                          const EventRoots& roots, EventConfig& config);

// Fills in the event `name` of whatever PMU has one of that name; false when none has. InvalidArgument when PMUs of
// different kinds have one: their sum would mean nothing.
absl::StatusOr<bool> FillNamedEvent(std::string_view whole, std::string_view name, const EventRoots& roots,
                                    EventConfig& config);

}  // namespace perfkit::event
