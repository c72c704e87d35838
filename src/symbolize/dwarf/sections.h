// The sections of a file that debug information is in, unpacked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/base/cursor.h"
#include "src/symbolize/line_source.h"

namespace perfkit::symbolize::dwarf {

// Views of the caller's bytes, or of what was unpacked, which it holds. Any thread.
struct Sections {
  base::Bytes info, abbrev, line, str, line_str, str_offsets, addr, ranges, rnglists, aranges;
  std::vector<std::unique_ptr<std::string>> unpacked;
  absl::Status status;  // what could not be unpacked

  static Sections From(const std::vector<DebugSection>& sections);
};

// What is packed in `section`, whose bytes begin with an Elf64_Chdr (SHF_COMPRESSED) or, by its name .zdebug_…, with
// "ZLIB" and the size. Unimplemented for a method that libelf does not know; InvalidArgument when damaged.
absl::StatusOr<std::unique_ptr<std::string>> Unpack(const DebugSection& section);

// The ELF file in .gnu_debugdata.
absl::StatusOr<std::string> UnpackMini(base::Bytes packed);

}  // namespace perfkit::symbolize::dwarf
