// Finds the location of a uprobe: a symbol's offset in an ELF file, and a library's path.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/event.h"
#include "src/elf/image.h"

namespace perfkit::event {

// Returns the file offset of the code of `symbol`: from the dynamic symbols, else from the static ones. Default
// versions have priority over old ones. Errors: NotFound with the nearest names; InvalidArgument if it is ambiguous, no
// code, or an IFUNC.
absl::StatusOr<uint64_t> FindCode(const elf::Image& image, std::string_view symbol);

// Returns the path of a mapped file that is called `name`, or `name` with ".so" and a version after it, by
// roots.proc/self/maps. Errors: NotFound if there is none.
absl::StatusOr<std::string> FindMappedFile(std::string_view name, const EventRoots& roots);

}  // namespace perfkit::event
