// What one process has mapped, as its records tell it one after the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perfkit::proc {

// A piece of memory that holds a piece of a module.
struct MappedRange {
  uint64_t begin = 0, end = 0;
  uint64_t offset = 0;  // where in the module its first byte is
  uint32_t module = 0;
};

// For one thread at a time.
class Space {
 public:
  // The kernel limits mappings to 65,530 by default (vm.max_map_count); what a process has beyond this stays unknown.
  static constexpr size_t kMaxRanges = 128 << 10;

  // Something new is mapped there. What was there before is gone: the kernel writes no record when memory is unmapped,
  // so that a later mapping is how one learns of it. Ranges that end before they begin are passed over.
  void Map(const MappedRange& range);
  // Something that is no code of any module.
  void Unmap(uint64_t begin, uint64_t end);
  // exec: all is gone.
  void Clear() { ranges_.clear(); }

  const MappedRange* Find(uint64_t address) const;
  const std::vector<MappedRange>& ranges() const { return ranges_; }

 private:
  std::vector<MappedRange> ranges_;  // in rising order, none over another
};

}  // namespace perfkit::proc
