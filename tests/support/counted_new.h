// Counts what a thread allocates with new: for one file of a test program, as it replaces the program's operator new.
#pragma once

#include <cstddef>
#include <cstdlib>

#include "tests/support/allocations.h"

// Not inlined: the compiler would take the free in one for a mismatch with the other.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
[[gnu::noinline]] void* operator new(size_t size) {
  ++perfkit::testing::allocations_so_far;
  if (void* const memory = std::malloc(size)) return memory;
  std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif
