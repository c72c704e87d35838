// A whole file as bytes, mapped and not read: for files of which little is looked at.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "src/sys/mapping.h"

namespace perfkit::sys {

// What tells a file from another one at the same path, and from itself before it was changed.
struct FileStamp {
  uint64_t inode = 0;
  int64_t changed_ns = 0;  // its contents, names or rights, by CLOCK_REALTIME
  bool deleted = false;    // it has no name any more
};

// `path`, read-only. NotFound, PermissionDenied or another code by errno; InvalidArgument when it is no regular file or
// is empty. The bytes are the file's own: whoever cuts it short meanwhile takes them away (SIGBUS), as with every
// mapped program and library. `stamp` is filled in even where mapping fails.
absl::StatusOr<Mapping> MapFile(const std::string& path, FileStamp* stamp = nullptr);

}  // namespace perfkit::sys
