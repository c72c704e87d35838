// Replaces a small file as a whole, under a lock that keeps other processes out.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace perfkit::sys {

// The new text for an old one; a Status leaves the file as it is.
using FileEdit = std::function<absl::StatusOr<std::string>(const std::string& text)>;

// Makes `path` if it is not there, waits for its lock, and replaces its text by `edit`'s. Every reader finds the old
// text or the new one, whole, also after a crash: the new one is written to `path`.new, is on the disk before it is
// renamed, and goes away again when that fails. Keeps the permissions; a symbolic link stays one.
absl::Status EditFile(const std::string& path, const FileEdit& edit);

}  // namespace perfkit::sys
