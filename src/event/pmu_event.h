// Events of PMUs under sysfs: "cpu/event=0x3c,umask=1/", "power/energy-pkg/", "uncore_imc/cas_count_read/", or just
// "energy-pkg".
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/event.h"

namespace perfkit::event {

// Fills in `terms` on PMU `name`, both views into `whole`. The name may mean all instances of an uncore unit:
// "uncore_imc", or "imc", for uncore_imc_0, uncore_imc_1 (one part each), as in perf. Errors, with the nearest names:
// NotFound if there is no such PMU; InvalidArgument for terms that it lacks; FailedPrecondition if its files in sysfs
// are malformed.
absl::Status FillPmuEvent(std::string_view whole, std::string_view name, std::string_view terms,
                          const EventRoots& roots, EventConfig& config);

// Fills in the event `name` of each PMU that has one. Returns false if none has. Errors: InvalidArgument if PMUs of
// different kinds have one, because their sum would have no meaning.
absl::StatusOr<bool> FillNamedEvent(std::string_view whole, std::string_view name, const EventRoots& roots,
                                    EventConfig& config);

}  // namespace perfkit::event
