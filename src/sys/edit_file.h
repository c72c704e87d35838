// Rewrites a small file in place, under a lock that keeps other processes out.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace perfkit::sys {

// The new text for an old one; a Status leaves the file as it is.
using FileEdit = std::function<absl::StatusOr<std::string>(const std::string& text)>;

// Makes `path` if it is not there, waits for its lock (flock), and replaces its text by `edit`'s. Not atomic for
// readers without the lock: a crash or a full disk in between leaves a part.
absl::Status EditFile(const std::string& path, const FileEdit& edit);

}  // namespace perfkit::sys
