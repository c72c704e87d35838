// Whole files and folder listings of /proc, sysfs and tracefs.
//
// Such files have no useful size and may change or vanish between two calls: each is read whole, once, to a bound.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace perfkit::sys {

// A file above this is not one of the kernel's small ones: reading stops with an error. /proc/kallsyms is about 12 MiB.
constexpr size_t kLargestFile = 64 << 20;

// The whole of `path`. NotFound, PermissionDenied or another code by errno; OutOfRange above `most` bytes.
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t most = kLargestFile);

// The names in folder `path`, sorted, without "." and "..".
absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path);

// Whether `path` exists where this process can see it.
bool Exists(const std::string& path);

// Whose `path` is; nothing when it cannot be looked at.
std::optional<uid_t> OwnerOf(const std::string& path);

// Whether `path` exists and this process may read it.
bool IsReadable(const std::string& path);

}  // namespace perfkit::sys
