// The sections of a file that contain debug information, decompressed.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "src/base/cursor.h"
#include "src/symbolize/line_source.h"

namespace perfkit::symbolize::dwarf {

// Views of the caller's bytes, or of decompressed ones, which this owns. Thread-safe to read.
struct Sections {
  base::Bytes info, abbrev, line, str, line_str, str_offsets, addr, ranges, rnglists, aranges;
  std::vector<std::vector<std::byte>> unpacked;
  absl::Status status;  // OK, or why a section could not be decompressed.

  Sections() = default;
  // Not copyable: the views of a copy would refer to the original's bytes.
  Sections(Sections&&) = default;
  Sections& operator=(Sections&&) = default;

  static Sections From(const std::vector<DebugSection>& sections);
};

}  // namespace perfkit::symbolize::dwarf
