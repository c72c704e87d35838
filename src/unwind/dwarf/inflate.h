// Unpacks compressed sections, as the gABI says ("Section Compression") and as GNU tools did before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/cursor.h"

namespace perfkit::unwind {

enum class Packing : uint8_t {
  kHeader,  // SHF_COMPRESSED: an Elf64_Chdr and the compressed bytes
  kGnu,     // in sections named .zdebug_…: "ZLIB", the size with its highest byte first, and the compressed bytes
};

// What `section` holds, by libelf. InvalidArgument ("says that …", "is packed …": of the section) when it is damaged,
// of a method that libelf does not know, or claims to hold more than `max_bytes`, or more than such bytes can.
absl::StatusOr<std::vector<std::byte>> Inflate(base::Bytes section, Packing packing, uint64_t max_bytes);

}  // namespace perfkit::unwind
