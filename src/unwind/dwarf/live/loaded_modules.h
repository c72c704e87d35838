// The modules that the dynamic linker has loaded into this process, and copies of their call frame information. It is
// copied from memory, because a module's file may have been replaced or deleted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "src/base/in_handler.h"
#include "src/base/last_at.h"
#include "src/base/mix.h"
#include "src/sys/own_memory.h"

namespace perfkit::unwind {

// The numbers of modules that were loaded and unloaded so far. If they are equal to earlier ones, nothing has changed.
struct LinkerCounts {
  uint64_t added = 0, removed = 0;

  bool operator==(const LinkerCounts&) const = default;
};

// What identifies a module in memory: another module that is loaded at the same addresses later differs. Sixteen bytes
// from its build-id. Without one, from .eh_frame_hdr, and the first of .eh_frame: two builds of a library that differ
// in a stack frame's size may have the same .eh_frame_hdr.
struct ModuleMark {
  static constexpr size_t kBytes = 16;
  static constexpr size_t kMaxRecordWords = 128;

  uint64_t address = 0;  // 0 means that the module has no mark.
  std::array<uint64_t, 2> words{};
  uint64_t records = 0;       // The address of .eh_frame.
  uint64_t record_words = 0;  // 0 if there is a build-id of kBytes or more.
  uint64_t records_hash = 0;

  // Returns true if the memory of the module has this mark. Takes 0.1 us, and up to 0.2 us more without a build-id.
  PERFKIT_IN_HANDLER bool IsThere() const {
    if (!CanReadAll(address, kBytes)) return false;
    if (sys::WordAt(address) != words[0] || sys::WordAt(address + sizeof(uint64_t)) != words[1]) return false;
    if (record_words == 0) return true;
    return CanReadAll(records, record_words * sizeof(uint64_t)) && HashAt(records, record_words) == records_hash;
  }

  PERFKIT_IN_HANDLER static uint64_t HashAt(uint64_t address, uint64_t words) {
    uint64_t hash = 0;
    for (uint64_t i = 0; i < words; ++i) {
      hash = base::Mix(hash ^ sys::WordAt(address + i * sizeof(uint64_t)));
      hash ^= hash >> 29;
    }
    return hash;
  }

 private:
  PERFKIT_IN_HANDLER static bool CanReadAll(uint64_t address, uint64_t bytes) {
    for (uint64_t page = sys::PageOf(address); page < address + bytes; page += sys::kMinPage) {
      if (!sys::CanRead(page)) return false;
    }
    return true;
  }
};

// The search table of .eh_frame_hdr in a module's memory (Linux Standard Base, Core 5.0, 10.6.2), as linkers write it.
struct FunctionTable {
  struct Entry {
    int32_t begin, record;
  };

  const Entry* entries = nullptr;  // Sorted by `begin`.
  uint64_t count = 0;
  uint64_t first = 0;  // The address that `begin` counts from: that of .eh_frame_hdr.

  // Returns true if a function begins at `address`. Reads the module's memory.
  bool Begins(uint64_t address) const {
    const auto begin_of = [this](const Entry& entry) { return first + static_cast<uint64_t>(int64_t{entry.begin}); };
    const Entry* const found = base::LastAt(entries, count, address, begin_of);
    return found != nullptr && begin_of(*found) == address;
  }
};

struct LoadedModule {
  struct Range {
    uint64_t begin = 0, end = 0;
  };

  std::string path;      // "" for the program.
  std::string identity;  // The build-id; if that has less than 16 bytes or is missing, also a hash of the CFI.
  std::string build_id;  // "" if it has none.
  uint64_t bias = 0;     // Added to the module's own addresses.
  ModuleMark mark;
  std::vector<Range> code;  // Executable memory.
  FunctionTable functions;  // Valid as long as the module is loaded. Empty if there is none, or code can't be read.
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
