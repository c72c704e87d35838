// Decompresses zstd's format (RFC 8878), which libelf cannot read before elfutils 0.189, nor if built without libzstd.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/cursor.h"

namespace perfkit::unwind {

// Returns the decompressed bytes of `packed`, by libzstd, which is loaded at the first use. Memory is `size` and the
// library's working memory, less than 1 MiB. Errors: InvalidArgument if there are not exactly `size` bytes, or `packed`
// is damaged; Unavailable if there is no libzstd. The message is a predicate whose subject is the section.
absl::StatusOr<std::vector<std::byte>> Unzstd(base::Bytes packed, size_t size);

}  // namespace perfkit::unwind
