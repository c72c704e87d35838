// Decompresses MiniDebugInfo: an ELF file with the symbols of private functions, in .gnu_debugdata ("MiniDebugInfo" in
// GDB's manual).
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "src/base/cursor.h"

namespace perfkit::symbolize::dwarf {

// Limits of hostile files, in bytes. The symbols of the largest programs take some 30 MiB; `xz -9` needs 65 MiB.
inline constexpr uint64_t kMaxMiniBytes = uint64_t{128} << 20;
inline constexpr uint64_t kMaxXzMemory = uint64_t{128} << 20;

// Returns the decompressed bytes of .gnu_debugdata, in xz's format. Memory and time are bounded by the limits. Errors:
// ResourceExhausted if a limit is exceeded; InvalidArgument if the section is damaged; Unavailable if liblzma.so.5
// cannot be loaded. The message begins with the section's name.
absl::StatusOr<std::string> UnpackMini(base::Bytes packed);

}  // namespace perfkit::symbolize::dwarf
