// Counts what a thread allocates with new: for one file of a test program, as it replaces the program's operator new.
//
// A sanitizer checks its own operator new against its own free: it is left alone, and kCountsNew says so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "tests/support/work.h"

namespace perfkit::testing {

inline constexpr bool kCountsNew = !kSanitized;
// Of this thread; only differences mean something.
inline thread_local uint64_t allocations_so_far = 0;

}  // namespace perfkit::testing

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
