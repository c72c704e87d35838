// The mappings of a process: the lines of /proc/PID/maps.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace perfkit::proc {

struct MapLine {
  uint64_t begin = 0, end = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  uint64_t file_offset = 0;
  uint32_t device_major = 0, device_minor = 0;
  uint64_t inode = 0;
  std::string_view path;  // "", a path (with its blanks and "(deleted)"), "[vdso]", …; a view into the line.
};

// Parses one line; nullopt if it is malformed.
std::optional<MapLine> ParseMapLine(std::string_view line);

// Returns the text of /proc/`pid`/maps. Errors: NotFound if there is no such process; PermissionDenied if this user may
// not read it.
absl::StatusOr<std::string> ReadMaps(pid_t pid, const std::string& proc = "/proc");

}  // namespace perfkit::proc
