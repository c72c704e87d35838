// The mappings of one process, updated record by record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perfkit::proc {

// A range of memory that maps a part of a module.
struct MappedRange {
  uint64_t begin = 0, end = 0;
  uint64_t offset = 0;  // Offset of its first byte in the module.
  uint32_t module = 0;
};

// Not thread-safe.
class Space {
 public:
  // Maximum number of ranges; further mappings stay unknown. The kernel's default limit is 65,530 (vm.max_map_count).
  static constexpr size_t kMaxRanges = 128 << 10;

  // Adds a mapping, which replaces older ones at its addresses: the kernel writes no record when memory is unmapped, so
  // only a later mapping shows it. Ignores ranges that end before they begin.
  void Map(const MappedRange& range);
  // Removes the mappings at these addresses, because something else than a module was mapped there.
  void Unmap(uint64_t begin, uint64_t end);
  // Removes all mappings, for exec.
  void Clear() { ranges_.clear(); }

  // Returns the range that contains `address`, or nullptr. Valid until the next change.
  const MappedRange* Find(uint64_t address) const;
  const std::vector<MappedRange>& ranges() const { return ranges_; }

 private:
  std::vector<MappedRange> ranges_;  // In rising order; none overlap.
};

}  // namespace perfkit::proc
