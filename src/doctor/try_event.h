// Opens one event and lets it count known work: the only way to know that it works.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "perfkit/capabilities.h"
#include "perfkit/event.h"
#include "src/doctor/workload.h"

namespace perfkit::doctor {

struct Verdict {
  Usability usability = Usability::kRefused;
  absl::Status usable;
  uint64_t value = 0;
  std::optional<ReadPath> path;
};

// Counts the workload with `event`, on this thread or, when it counts a place, on every CPU. `moved_by` must move it.
Verdict TryEvent(const EventConfig& event, Work moved_by, Workload& workload);

// The same from text. A name that is refused is a verdict too.
Verdict TryEvent(std::string_view name, Work moved_by, Workload& workload, const EventRoots& roots = {});

}  // namespace perfkit::doctor
