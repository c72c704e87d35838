// The modules that the dynamic linker has loaded into this process, and copies of their call frame information. It is
// copied from memory, because a module's file may have been replaced or deleted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

namespace perfkit::unwind {

// The numbers of modules that were loaded and unloaded so far. If they are equal to earlier ones, nothing has changed.
struct LinkerCounts {
  uint64_t added = 0, removed = 0;

  bool operator==(const LinkerCounts&) const = default;
};

// Sixteen bytes in a module's memory that identify it: another module that is loaded at the same addresses later has
// other ones. They are from its build-id or, without one, from .eh_frame_hdr.
struct ModuleMark {
  static constexpr size_t kBytes = 16;

  uint64_t address = 0;  // 0 means that the module has no mark.
  std::array<uint64_t, 2> words{};
};

struct LoadedModule {
  struct Range {
    uint64_t begin = 0, end = 0;
  };

  std::string path;      // "" for the program.
  std::string identity;  // The build-id, or a hash of the call frame information.
  std::string build_id;  // "" if it has none.
  uint64_t bias = 0;     // Added to the module's own addresses.
  ModuleMark mark;
  std::vector<Range> code;  // Executable memory.
  // An ELF file that contains only its call frame information; empty if there is none, or it was not requested.
  std::vector<std::byte> image;
};

struct LoadedModules {
  LinkerCounts counts;
  std::vector<LoadedModule> modules;
  bool whole = true;  // False if a requested copy was left out.
};

// Returns the current counts.
LinkerCounts CountLoaded();

// Returns all loaded modules, with copies for those that `wanted` returns true for: as many as fit into `max_bytes`,
// but at least one. Holds the dynamic linker's lock, so no module is loaded or unloaded meanwhile; keep `wanted` short.
LoadedModules LookAtLoaded(absl::FunctionRef<bool(const LoadedModule&)> wanted, size_t max_bytes);

}  // namespace perfkit::unwind
