// Unpacks compressed sections (SHF_COMPRESSED: gABI, "Section Compression").
#pragma once

#include <cstddef>
#include <vector>

#include "src/base/cursor.h"

namespace perfkit::unwind {

// What an Elf64_Chdr and the compressed bytes behind it hold, by libelf. Nothing when they are damaged, when libelf
// does not know the method, or when they claim to hold more than such bytes can.
std::vector<std::byte> Inflate(base::Bytes section);

}  // namespace perfkit::unwind
