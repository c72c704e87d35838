// Uprobes: "uprobe:file:symbol", "uprobe:file+offset" count entries of a function; "uretprobe:" counts its returns.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "perfkit/event.h"

namespace perfkit::event {

constexpr std::string_view kEntryProbePrefix = "uprobe:";
constexpr std::string_view kReturnProbePrefix = "uretprobe:";

// Fills in what `text` (beginning with one of the prefixes, a view into `whole`) says, and leaves in `modifiers` what
// stands after a further colon. The file is a path, or the bare name of a library that this process has mapped
// ("libc.so.6", "libc"). The symbol may have "+offset" after it.
// NotFound: no such file, symbol (with the nearest ones) or no uprobes in this kernel (before 4.17).
// InvalidArgument: not a 64-bit ELF file, an offset outside its code, a symbol that several places have, or one that
// the loader chooses at run time (IFUNC): its address would count the choosing, not the calls.
absl::Status FillProbe(std::string_view whole, std::string_view text, const EventRoots& roots, EventConfig& config,
                       std::optional<std::string_view>& modifiers);

}  // namespace perfkit::event
