// Uprobes: "uprobe:file:symbol" and "uprobe:file+offset" count entries of a function; "uretprobe:" counts its returns.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "perfkit/event.h"

namespace perfkit::event {

constexpr std::string_view kEntryProbePrefix = "uprobe:";
constexpr std::string_view kReturnProbePrefix = "uretprobe:";

// Parses `text` (which begins with one of the prefixes, a view into `whole`) into `config`, and returns in `modifiers`
// the text after a further colon. The file is a path, or the bare name of a library that this process has mapped
// ("libc.so.6", "libc"). The symbol may have "+offset" after it. Errors: NotFound if there is no such file or symbol
// (with the nearest ones), or no uprobes in this kernel (before 4.17); InvalidArgument if it is no 64-bit ELF file, for
// an offset outside its code, for a symbol with several definitions, and for one that the loader chooses at run time
// (IFUNC): a probe there would count the choice, not the calls.
absl::Status FillProbe(std::string_view whole, std::string_view text, const EventRoots& roots, EventConfig& config,
                       std::optional<std::string_view>& modifiers);

}  // namespace perfkit::event
