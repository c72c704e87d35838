// Replaces a small file as a whole, under a lock against other processes.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace perfkit::sys {

// Returns the new text for the old one; on an error the file stays unchanged.
using FileEdit = std::function<absl::StatusOr<std::string>(const std::string& text)>;

// Creates `path` if it does not exist, waits for its lock, and replaces its text by the result of `edit`. Each reader
// finds the old or the new text as a whole, even after a crash: the new text is written to `path`.new, is on the disk
// before it is renamed, and is removed if that fails. Keeps the permissions; a symbolic link stays a link. Errors:
// FailedPrecondition with a remedy if `path` or `path`.new is not a regular file.
absl::Status EditFile(const std::string& path, const FileEdit& edit);

}  // namespace perfkit::sys
