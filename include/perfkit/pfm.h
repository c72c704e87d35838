// Names of hardware events as libpfm4 has them: "INST_RETIRED:ANY_P:u", "icx::MEM_LOAD_RETIRED:L3_MISS".
//
// Component perfkit::pfm. ParseEvent of the core does not accept these names, because the core does not use libpfm4.
// Parse them here, and pass them to CounterSet::Open as groups. A Sampler does not accept them.
//   absl::StatusOr<EventConfig> event = perfkit::ParsePfmEvent("MEM_LOAD_RETIRED:L3_MISS:u");
//   const std::vector<EventConfig> groups[] = {{*event}};
//   auto set = perfkit::CounterSet::Open(groups);
#pragma once

#include "perfkit/detail/library_only.h"

#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/event.h"

namespace perfkit {

// Parses one event by libpfm4's name, with libpfm4's modifiers after colons (:u :k :h, :precise=n, :pinned, :excl, :mg,
// :mh); a prefix "pfm:" is allowed. Without a PMU's name ("icx::"), searches the PMUs of this machine. Thread-safe; the
// first call reads sysfs and takes milliseconds.
// Errors: InvalidArgument if no PMU of this machine has such an event, unit mask or modifier, also because libpfm4 has
// no tables for the PMU, and for modifiers of sampling (period, freq); NotFound if libpfm4 does not support the
// machine.
absl::StatusOr<EventConfig> ParsePfmEvent(std::string_view text);

}  // namespace perfkit
