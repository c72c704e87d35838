// The notes of an ELF file, and the build-id among them, which identifies a module.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "src/elf/image.h"

namespace perfkit::elf {

struct Note {
  std::string_view owner;  // "GNU", "stapsdt", …
  uint32_t type = 0;
  base::Bytes description;  // Padding not included.
};

// Calls `visit` for each note in `bytes`, the contents of a note section or segment, until it returns false or a note
// exceeds the bytes. `alignment` is that of the section or segment: 8 means 8, any other value 4 (gABI chapter 5, "Note
// Section").
void ForEachNote(base::Bytes bytes, uint64_t alignment, absl::FunctionRef<bool(const Note&)> visit);

// Returns the linker's hash of the file (NT_GNU_BUILD_ID), usually 20 bytes; nullopt if the file has none. Works on
// files without section headers.
std::optional<base::Bytes> BuildId(const Image& image);

// Returns the bytes as lower-case hexadecimal digits, as debuginfod and .build-id folders write them.
std::string HexText(base::Bytes bytes);

}  // namespace perfkit::elf
