// The sections of a file that debug information is in, unpacked.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/base/cursor.h"
#include "src/symbolize/line_source.h"

namespace perfkit::symbolize::dwarf {

// Views of the caller's bytes, or of what was unpacked, which it holds. Any thread.
struct Sections {
  base::Bytes info, abbrev, line, str, line_str, str_offsets, addr, ranges, rnglists, aranges;
  std::vector<std::vector<std::byte>> unpacked;
  absl::Status status;  // what could not be unpacked

  Sections() = default;
  Sections(Sections&&) = default;  // and no copies: their views would be of the original's bytes
  Sections& operator=(Sections&&) = default;

  static Sections From(const std::vector<DebugSection>& sections);
};

// The ELF file in .gnu_debugdata.
absl::StatusOr<std::string> UnpackMini(base::Bytes packed);

}  // namespace perfkit::symbolize::dwarf
