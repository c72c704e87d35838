// Reads the end of a growing file, if a trusted user owns it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace perfkit::sys {

struct FileTail {
  std::string text;         // Empty if the file ends at or before the offset.
  uint64_t inode = 0;       // Of the file: if it differs from the last time, the file was replaced.
  uint64_t size = 0;        // Of the file: if it is smaller than the last time, the file was written anew.
  uint64_t changed_ns = 0;  // When the file was changed last, by CLOCK_REALTIME.
};

// Returns the bytes of `path` from `offset` on, at most `most` of them. If the last component of `path` is a symbolic
// link, fails instead of following it, because other users may write to the folder. Thread-safe. Allocates. Errors:
// NotFound, PermissionDenied or another code by errno; FailedPrecondition if it is no regular file or is owned by none
// of `owners`.
absl::StatusOr<FileTail> ReadOwnedTail(const std::string& path, std::span<const uid_t> owners, uint64_t offset,
                                       size_t most);

}  // namespace perfkit::sys
