// The number of allocations of the calling thread, if the program counts them.
//
// No kernel event counts calls of malloc without privileges, but a program can: an object file that replaces malloc
// defines perfkit_thread_allocations (src/testing/alloc/hooks.cc does). The symbol is weak, so nothing here depends on
// that file.
#pragma once

#include <cstdint>

// Returns the address of the calling thread's count, which only grows; valid as long as the thread lives. The function
// itself is null if the program does not define it.
extern "C" [[gnu::weak]] const uint64_t* perfkit_thread_allocations();

namespace perfkit::sys {

// Returns nullptr if nothing counts allocations.
inline const uint64_t* ThreadAllocations() {
  return perfkit_thread_allocations == nullptr ? nullptr : perfkit_thread_allocations();
}

}  // namespace perfkit::sys
