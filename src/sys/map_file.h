// Maps a whole file without reading it: for files that are needed in small parts only.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "src/sys/mapping.h"

namespace perfkit::sys {

// Tells a file from another one at the same path, and from its own earlier contents.
struct FileStamp {
  uint64_t inode = 0;
  int64_t changed_ns = 0;  // Last change of its contents, name or rights, by CLOCK_REALTIME.
  bool deleted = false;    // True if it has no name any more.
};

// Maps `path` read-only. Errors: NotFound, PermissionDenied or another code by errno; InvalidArgument if it is no
// regular file or is empty. The bytes are the file's own: if another process truncates the file, reading them raises
// SIGBUS, as for each mapped program and library. Fills in `stamp` even if mapping fails.
absl::StatusOr<Mapping> MapFile(const std::string& path, FileStamp* stamp = nullptr);

}  // namespace perfkit::sys
