// The location of a function of this process in its file, for a uprobe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace perfkit::doctor {

struct FileLocation {
  std::string path;
  uint64_t offset = 0;
};

// Returns the file and offset from which `code` was mapped; nullopt if it is in no loaded program or library. `proc`:
// where procfs is mounted.
std::optional<FileLocation> FileLocationOf(const void* code, const std::string& proc = "/proc");

}  // namespace perfkit::doctor
