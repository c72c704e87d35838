// Finds FDEs by address: with the linker's search table (.eh_frame_hdr) if it is valid, else with a table of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "src/unwind/dwarf/cfi/cfi_records.h"

namespace perfkit::unwind {

// Numbers the FDEs by slots, from 0 to size() - 1, in the order of their first addresses. Not thread-safe.
class FdeIndex {
 public:
  // Reads all records if there is no valid table, and leaves out FDEs without code, which the linker's table may have.
  // `code_only`: omits FDEs at address 0, where .debug_frame keeps those of functions that the linker has removed.
  FdeIndex(CfiRecords& records, bool code_only);

  size_t size() const { return count_; }

  // Returns the number of FDEs that begin at or before `address`. The last of them, in slot CountUpTo - 1, is the
  // nearest.
  size_t CountUpTo(uint64_t address) const;

  // Returns the offset of the FDE in its section.
  uint64_t OffsetOf(size_t slot) const;

  size_t heap_bytes() const { return own_.capacity() * sizeof(Entry); }

 private:
  struct Entry {
    uint64_t begin;
    uint64_t offset;
  };

  // Sets table_ to the linker's table. Returns false if it is not valid.
  bool UseHeader(const CfiSection& section);
  bool IsSorted() const;
  // Returns the first address of an FDE, from header_address_ on.
  int32_t HeaderBegin(size_t slot) const;
  size_t CountInHeader(uint64_t address) const;

  base::Bytes table_;  // The linker's, pairs of 4-byte numbers; empty if own_ is used.
  uint64_t header_address_ = 0;
  uint64_t section_address_ = 0;
  size_t count_ = 0;
  std::vector<Entry> own_;  // Sorted by begin.
};

}  // namespace perfkit::unwind
