// The last part of a module's path, as it stands in the names of code without symbols. FileName of text_table.h cuts
// relative paths too: it is also for source files.
#pragma once

#include <string_view>

namespace perfkit::profile {

// "/usr/lib/libm.so.6" -> "libm.so.6". Names that are no absolute path stay as they are: "[kernel]", "//anon".
inline std::string_view BaseName(std::string_view path) {
  const bool is_path = path.starts_with('/') && !path.starts_with("//");
  return is_path ? path.substr(path.rfind('/') + 1) : path;
}

}  // namespace perfkit::profile
