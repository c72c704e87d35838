// Separate debug files, into which distributions move the symbols and the debug information of programs and libraries.
//
//   by build-id    ROOT/.build-id/ab/cdef….debug
//   by debuglink   the name in .gnu_debuglink, beside the file, in .debug/ there, and in ROOT/folder/of/the/file/
//
// These are the locations that gdb and perf try, too (GDB manual, "Debugging Information in Separate Files").
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

// Finds the debug file of `image`, which was read from `path`. `root` is the folder of separate debug files; "" means
// none. Ignores files of other builds: the build-id must be equal or, if there is none, the checksum must be that of
// the debuglink.
std::optional<DebugFile> FindDebugFile(const elf::Image& image, const std::string& path, const std::string& root);

// Downloads the debug file of the same build as `image`. Errors: NotFound if `image` has no build-id, or if the
// downloaded file belongs to another build; those of DebugFetcher::Fetch.
absl::StatusOr<DebugFile> FetchDebugFile(const elf::Image& image, DebugFetcher& fetcher);

// dwz moves the common parts of several debug files to a shared file, which .gnu_debugaltlink names ("DWZ" in GDB's
// manual). These return that name, or that file if its build-id is the one in the link.
std::optional<std::string> SharedDebugFileName(const elf::Image& image);
std::optional<DebugFile> FindSharedDebugFile(const elf::Image& image, const std::string& path, const std::string& root);
absl::StatusOr<DebugFile> FetchSharedDebugFile(const elf::Image& image, DebugFetcher& fetcher);

// The checksum of .gnu_debuglink: CRC-32 of IEEE 802.3, as zlib's.
uint32_t Crc32(base::Bytes bytes);

}  // namespace perfkit::symbolize
