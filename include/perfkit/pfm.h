// Names of hardware events as libpfm4 knows them: "INST_RETIRED:ANY_P:u", "icx::MEM_LOAD_RETIRED:L3_MISS".
//
// Component perfkit::pfm: link it to have this function. The core neither needs nor knows libpfm4, so its ParseEvent
// does not take these names: parse them here and hand the result to whatever takes an EventConfig.
//   absl::StatusOr<EventConfig> event = perfkit::ParsePfmEvent("MEM_LOAD_RETIRED:L3_MISS:u");
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/event.h"

namespace perfkit {

// One event by libpfm4's name, with libpfm4's modifiers after colons (:u :k :h, :precise=n, :pinned, :excl, :mg, :mh);
// "pfm:" may stand before it. Without a PMU's name ("icx::") the PMUs of this machine are searched.
// InvalidArgument: no such event, unit mask or modifier, or one that says how to sample (period, freq). NotFound:
// libpfm4 has no tables for this machine's PMUs. Any thread; the first call reads sysfs and takes milliseconds.
absl::StatusOr<EventConfig> ParsePfmEvent(std::string_view text);

}  // namespace perfkit
