// The end of a file that grows, if it is owned by whom it should be.
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

// What `path` has from byte `offset` on, at most `most` bytes of it. Follows no symbolic link at the end of `path`, for
// files in folders where everybody may write. NotFound, PermissionDenied or another code by errno; FailedPrecondition
// when it is no regular file or is owned by none of `owners`.
absl::StatusOr<FileTail> ReadOwnedTail(const std::string& path, std::span<const uid_t> owners, uint64_t offset,
                                       size_t most);

}  // namespace perfkit::sys
