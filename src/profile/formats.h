// Where the core finds the formats of perfkit::exporters: a table that is there only if that component is linked. Which
// format a file has.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/status/statusor.h"
#include "perfkit/profile_writer.h"

namespace perfkit {

struct ExporterFormats {
  const ProfileFormat* formats;
  size_t count;
};

// Defined by src/exporters/formats.cc. Weak: its address is nullptr if it is not linked. The component's CMake target
// makes the linker look for it (cmake/Component.cmake). Begins with a capital letter, so that a shared library
// exports it (cmake/perfkit.map).
extern const ExporterFormats ExporterFormatTable __attribute__((weak));

// Returns the format that WriteProfile uses for `path`. Errors: its InvalidArgument and Unimplemented for the
// extension.
absl::StatusOr<ProfileFormat> FormatOf(std::string_view path);

}  // namespace perfkit
