// Opens one event and counts known work with it: the only way to find out that it works.
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

// Counts the workload with `event` on this thread, or on every CPU if it is cpu-wide. `raised_by`: the part of the
// workload that must raise it; with kNothing, a count of 0 proves nothing.
Verdict TryEvent(const EventConfig& event, Work raised_by, Workload& workload);

// As above, for text. A name that is refused gives a verdict too.
Verdict TryEvent(std::string_view name, Work raised_by, Workload& workload, const EventRoots& roots = {});

}  // namespace perfkit::doctor
