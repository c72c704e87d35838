// Where a function of this process lies in its file: what a uprobe is planted on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace perfkit::doctor {

struct FileLocation {
  std::string path;
  uint64_t offset = 0;
};

// The file and offset that `code` was mapped from; nothing when it is in no loaded program or library.
std::optional<FileLocation> FileLocationOf(const void* code);

}  // namespace perfkit::doctor
