// Where a uprobe goes: a symbol's place in an ELF file, and a library's path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "src/elf/image.h"

namespace perfkit::event {

// The file offset of the code of `symbol`: from the dynamic symbols, else from the static ones. Default versions go
// before old ones. NotFound with the nearest names; InvalidArgument when it is ambiguous, no code, or an IFUNC.
absl::StatusOr<uint64_t> FindCode(const elf::Image& image, std::string_view symbol);

// The path of a mapped file that is called `name`, or `name` with ".so" and a version after it, by
// roots.proc/self/maps. NotFound when none is.
absl::StatusOr<std::string> FindMappedFile(std::string_view name, const EventRoots& roots);

}  // namespace perfkit::event
