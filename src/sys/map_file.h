// Maps a whole file without reading it: for files that are needed in small parts only. A file that other users may cut
// short is read instead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "src/sys/mapping.h"

namespace perfkit::sys {

// Tells a file from another one at the same path, and from its own earlier contents.
struct FileStamp {
  uint64_t inode = 0;
  int64_t changed_ns = 0;  // Last change of its contents, name or rights, by CLOCK_REALTIME.
  int64_t written_ns = 0;  // Last change of its contents, which its owner may have set to any other time.
  bool deleted = false;    // True if it has no name any more.
  // Device of its file system as in mappings: major << 32 | minor. 0 means unknown: on overlayfs, btrfs and FUSE, files
  // have another one in stat than in mappings.
  uint64_t device = 0;
};

// Returns the stamp of `path`, or nullopt, with errno.
std::optional<FileStamp> StampOf(const std::string& path);

// Maximum size of a file that is read.
inline constexpr uint64_t kMaxReadBytes = uint64_t{1} << 30;

// Maps `path` read-only if only root and this user may write to it. Its bytes are the file's own then: if one of them
// truncates the file, reading the bytes raises SIGBUS, as for each mapped program and library. Any other file is copied
// to memory, in about 0.4 ms a MiB: else each user could end a profiler of root. Errors: NotFound, PermissionDenied or
// another code by errno; InvalidArgument if it is no regular file, is empty, or was cut short while it was read;
// ResourceExhausted if it would have to be read and has more than kMaxReadBytes. Fills in `stamp` even if mapping
// fails.
absl::StatusOr<Mapping> MapFile(const std::string& path, FileStamp* stamp = nullptr);

}  // namespace perfkit::sys
