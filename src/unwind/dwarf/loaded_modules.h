// What the dynamic linker has loaded into this process, and the call frame information that came along, as memory has
// it: the file may be another one by now, or gone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"

namespace perfkit::unwind {

// How often modules came and went. Equal: nothing has changed.
struct LinkerCounts {
  uint64_t added = 0, removed = 0;

  bool operator==(const LinkerCounts&) const = default;
};

// Sixteen bytes of a module by which it is told from any other that may be loaded at the same place later: of its
// build-id, else of the table of its functions.
struct ModuleMark {
  static constexpr size_t kBytes = 16;

  uint64_t address = 0;  // 0: it has none
  std::array<uint64_t, 2> words{};
};

struct LoadedModule {
  struct Range {
    uint64_t begin = 0, end = 0;
  };

  std::string path;      // "" of the program
  std::string identity;  // build-id, or a hash where there is none
  std::string build_id;  // "" where there is none
  uint64_t bias = 0;     // added to the module's own addresses
  ModuleMark mark;
  std::vector<Range> code;       // executable memory
  std::vector<std::byte> image;  // an ELF file of its call frame information alone; empty: not asked for, or none
};

struct LoadedModules {
  LinkerCounts counts;
  std::vector<LoadedModule> modules;
  bool whole = true;  // no copy was left out
};

LinkerCounts CountLoaded();

// Of modules that `wanted` says so of, with copies: as many as fit into `max_bytes`, and one at least. No module comes
// or goes meanwhile, for the linker's lock is held: whoever loads one, waits. So `wanted` does little.
LoadedModules LookAtLoaded(absl::FunctionRef<bool(const LoadedModule&)> wanted, size_t max_bytes);

}  // namespace perfkit::unwind
