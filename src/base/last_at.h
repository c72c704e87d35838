// Finds the last of several sorted entries that does not begin after an address: the search in every table of ranges.
//
// The loop halves the range without a branch on the comparison: the compiler makes a conditional move of it. A branch
// would be mispredicted every second time. With a branch, the processor would load an entry of the next step before
// the comparison is done. The loop prefetches both candidates instead.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perfkit::base {

// Requires that `begin_of(entry)` rises. Returns nullptr if the first entry begins after `address`, or if there is
// none.
template <class T, class BeginOf>
const T* LastAt(const T* first, size_t count, uint64_t address, BeginOf begin_of) {
  if (count == 0) return nullptr;
  for (size_t left = count; left > 1;) {
    const size_t half = left / 2;
    const size_t next = (left - half) / 2;
    __builtin_prefetch(first + next);
    __builtin_prefetch(first + half + next);
    first += begin_of(first[half]) <= address ? half : 0;
    left -= half;
  }
  return begin_of(*first) <= address ? first : nullptr;
}

}  // namespace perfkit::base
