// Counts a thread's allocations by new. For one file of a test program, because it replaces the program's operator new.
#pragma once

#include <malloc.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "src/base/sanitizers.h"
#include "tests/support/allocations.h"

// Not inlined: the compiler would take the free in one for a mismatch with the other.
#if !PERFKIT_SANITIZED
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  ++perfkit::testing::allocations_so_far;
  void* memory = nullptr;
  if (posix_memalign(&memory, static_cast<size_t>(alignment), size) != 0) std::abort();
  perfkit::testing::bytes_held += static_cast<int64_t>(malloc_usable_size(memory));
  perfkit::testing::max_bytes_held = std::max(perfkit::testing::max_bytes_held, perfkit::testing::bytes_held);
  return memory;
}
[[gnu::noinline]] void* operator new(size_t size) {
  return operator new(size, std::align_val_t(__STDCPP_DEFAULT_NEW_ALIGNMENT__));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  perfkit::testing::bytes_held -= static_cast<int64_t>(malloc_usable_size(memory));
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { operator delete(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { operator delete(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept { operator delete(memory); }
#endif
