// Separate debug files: where distributions put the symbols that they strip from programs and libraries.
//
//   by build-id    ROOT/.build-id/ab/cdef….debug
//   by debuglink   the name in .gnu_debuglink, beside the file, in .debug/ there, and in ROOT/folder/of/the/file/
//
// As gdb and perf look them up (GDB manual, "Debugging Information in Separate Files").
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "src/elf/image.h"
#include "src/symbolize/debug_fetcher.h"
#include "src/sys/mapping.h"

namespace perfkit::symbolize {

struct DebugFile {
  std::string path;
  sys::Mapping bytes;
};

// The debug file of `image`, which was read from `path`. One that belongs to another build is passed over: its build-id
// must be the same, or (where there is none) its checksum must be what the debuglink says.
std::optional<DebugFile> FindDebugFile(const elf::Image& image, const std::string& path, const std::string& root);

// The debug file of the same build as `image` from elsewhere. NotFound when `image` has no build-id, or what came is of
// another build; the errors of DebugFetcher::Fetch.
absl::StatusOr<DebugFile> FetchDebugFile(const elf::Image& image, DebugFetcher& fetcher);

// What several debug files have in common dwz puts into a file of its own, which .gnu_debugaltlink names ("DWZ" in
// GDB's manual): that name, and the file, when one is here whose build-id is the one that the link says.
std::optional<std::string> SharedDebugFileName(const elf::Image& image);
std::optional<DebugFile> FindSharedDebugFile(const elf::Image& image, const std::string& path, const std::string& root);
absl::StatusOr<DebugFile> FetchSharedDebugFile(const elf::Image& image, DebugFetcher& fetcher);

// The checksum of .gnu_debuglink: CRC-32 of IEEE 802.3, as zlib's.
uint32_t Crc32(base::Bytes bytes);

}  // namespace perfkit::symbolize
