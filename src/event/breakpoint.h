// Hardware breakpoints, "mem:address[/length][:access]": count reads, writes or executions of an address in memory.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "perfkit/event.h"

namespace perfkit::event {

constexpr std::string_view kBreakpointPrefix = "mem:";

// Parses `body` (the text after "mem:", a view into `whole`) into `config`, and returns in `modifiers` the text after a
// further colon (empty if there is none). perf's defaults: reads and writes; 4 bytes, for x the size of a long. Errors:
// InvalidArgument for a bad address, length (1 to 8) or access.
absl::Status FillBreakpoint(std::string_view whole, std::string_view body, EventConfig& config,
                            std::optional<std::string_view>& modifiers);

}  // namespace perfkit::event
