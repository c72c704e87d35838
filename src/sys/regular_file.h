// Opens and reads files that must be regular ones: not devices, FIFOs, sockets or folders.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/sys/fd.h"

namespace perfkit::sys {

// Returns OK if `fd` refers to a regular file. Errors: FailedPrecondition with `path`, what it is instead, and
// `remedy`; by errno if it cannot be looked at.
absl::Status CheckRegular(const OwnedFd& fd, const std::string& path, std::string_view remedy);

// Opens `path`, by these flags of open(2), if it is a regular file or a symbolic link to one. Opens nothing else: a
// device may act when it is opened, and a FIFO waits for its other end. Errors: as CheckRegular, or by errno.
absl::StatusOr<OwnedFd> OpenRegularFile(const std::string& path, int flags);

// Returns the contents of the regular file `path`. Errors: NotFound if nothing is there; as the functions above.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path);

}  // namespace perfkit::sys
