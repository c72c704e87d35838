// Reads the end of a growing file, if a trusted user owns it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace perfkit::sys {

struct FileTail {
  std::string text;
  uint64_t inode = 0;
};

// Returns the bytes of `path` from `offset` on, at most `most` of them. Follows no symbolic link at the end of `path`,
// for files in folders that all users may write to. Errors: NotFound, PermissionDenied or another code by errno;
// FailedPrecondition if it is no regular file or is owned by none of `owners`.
absl::StatusOr<FileTail> ReadOwnedTail(const std::string& path, std::span<const uid_t> owners, uint64_t offset,
                                       size_t most);

}  // namespace perfkit::sys
