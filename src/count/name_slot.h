// The hash of a name below a parent, for tables with open addressing.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace perfkit::count {

// Returns NameSlot's `shift` for a table: 64 less the logarithm of `entries`, a power of two, at least 2.
inline unsigned NameShift(size_t entries) { return static_cast<unsigned>(std::countl_zero(uint64_t{entries} - 1)); }

// Fibonacci hashing: the uppermost bits of a product with 2^64 / the golden ratio depend on all bits of the key.
inline size_t NameSlot(uint16_t parent, const char* name, unsigned shift) {
  const uint64_t key = reinterpret_cast<uintptr_t>(name) + (uint64_t{parent} << 48);
  return static_cast<size_t>((key * 0x9E3779B97F4A7C15u) >> shift);
}

}  // namespace perfkit::count
