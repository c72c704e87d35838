// Hardware breakpoints, "mem:address[/length][:access]": counts reads, writes or executions of a place in memory.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "perfkit/event.h"

namespace perfkit::event {

constexpr std::string_view kBreakpointPrefix = "mem:";

// Fills in what `body` (the text after "mem:", a view into `whole`) says, and leaves in `modifiers` what stands
// after a further colon (nothing when there is none). InvalidArgument: a bad address, length (1 to 8) or access.
// perf's defaults: reads and writes; 4 bytes, for x the size of a long.
absl::Status FillBreakpoint(std::string_view whole, std::string_view body, EventConfig& config,
                            std::optional<std::string_view>& modifiers);

}  // namespace perfkit::event
