// A whole file as bytes, mapped and not read: for files of which little is looked at.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "src/sys/mapping.h"

namespace perfkit::sys {

// `path`, read-only. NotFound, PermissionDenied or another code by errno; InvalidArgument when it is no regular file or
// is empty. The bytes are the file's own: whoever cuts it short meanwhile takes them away (SIGBUS), as with every
// mapped program and library. `inode` gets the file's number, by which the kernel names what is mapped.
absl::StatusOr<Mapping> MapFile(const std::string& path, uint64_t* inode = nullptr);

}  // namespace perfkit::sys
