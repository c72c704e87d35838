// Finds FDEs by address: by the linker's search table (.eh_frame_hdr) where it can be trusted, else by one of our own.
#pragma once

#include <cstdint>
#include <vector>

#include "src/unwind/dwarf/cfi_records.h"

namespace perfkit::unwind {

// FDEs have slots, 0 to size() - 1, by where their code begins, rising. One thread at a time.
class FdeIndex {
 public:
  // Builds the index when it has to: walks all records once, then. `code_only`: leaves out FDEs of code at address 0,
  // which is where .debug_frame keeps functions that the linker has thrown away.
  FdeIndex(CfiRecords& records, bool code_only);

  size_t size() const { return count_; }

  // How many FDEs begin at or before `address`: the last of these, in slot CountUpTo - 1, is the nearest.
  size_t CountUpTo(uint64_t address) const;

  // The offset of its record.
  uint64_t OffsetOf(size_t slot) const;

  size_t heap_bytes() const { return own_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    uint64_t begin;
    uint64_t offset;
  };

  bool UseHeader(const CfiSection& section);
  bool IsSorted() const;
  int32_t HeaderBegin(size_t slot) const;
  size_t CountInHeader(uint64_t address) const;

  base::Bytes table_;  // the linker's: pairs of 4-byte numbers; empty: ours is used
  uint64_t header_address_ = 0;
  uint64_t section_address_ = 0;
  size_t count_ = 0;
  std::vector<Entry> own_;
};

}  // namespace perfkit::unwind
