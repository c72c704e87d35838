// Notes of an ELF file, and the build-id among them: the identity of a module.
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
  base::Bytes description;
};

// Calls `visit` with each note in `bytes` (a note section or segment), until it returns false or the notes make no
// sense. `alignment` is the section's or segment's: 8 where it says so, else 4 (gABI chapter 5, "Note Section").
void ForEachNote(base::Bytes bytes, uint64_t alignment, absl::FunctionRef<bool(const Note&)> visit);

// The linker's hash of the file (NT_GNU_BUILD_ID), usually 20 bytes; nothing when it has none. Works on files without
// section headers too.
std::optional<base::Bytes> BuildId(const Image& image);

// As lower-case hexadecimal digits, as debuginfod and .build-id folders spell it.
std::string HexText(base::Bytes bytes);

}  // namespace perfkit::elf
