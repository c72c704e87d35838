// The last of sorted things that does not begin after an address: the search under every table of ranges here.
//
// Halves what is left without asking where the address is: the compiler makes a conditional move of it, where a branch
// would be guessed wrongly every second time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perfkit::base {

// `begin_of(thing)` rises. Null: the first one begins after it, or there is none.
template <class T, class BeginOf>
const T* LastAt(const T* first, size_t count, uint64_t address, BeginOf begin_of) {
  if (count == 0) return nullptr;
  for (size_t left = count; left > 1;) {
    const size_t half = left / 2;
    first += begin_of(first[half]) <= address ? half : 0;
    left -= half;
  }
  return begin_of(*first) <= address ? first : nullptr;
}

}  // namespace perfkit::base
