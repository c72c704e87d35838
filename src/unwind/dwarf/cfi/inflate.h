// Decompresses sections: in the format of the gABI ("Section Compression") and in GNU's older one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/cursor.h"

namespace perfkit::unwind {

enum class Packing : uint8_t {
  kHeader,  // SHF_COMPRESSED: an Elf64_Chdr and the compressed bytes.
  kGnu,     // Sections named .zdebug_…: "ZLIB", the size in big-endian order, and the compressed bytes.
};

// Returns the decompressed bytes of `section`, by libelf (zlib) or libzstd. Errors: InvalidArgument if the section is
// damaged, compressed by another method, or claims more than `max_bytes` or more than its size can hold;
// ResourceExhausted if it claims more than 64 MiB and 64 times its size, or if there is no memory; Unavailable if it is
// compressed by zstd and there is no libzstd. The message is a predicate whose subject is the section: "is damaged …".
absl::StatusOr<std::vector<std::byte>> Inflate(base::Bytes section, Packing packing, uint64_t max_bytes);

}  // namespace perfkit::unwind
