// The allocations of the calling thread, if the program counts them.
//
// No kernel event counts calls of malloc without privileges, but a program can: an object file that replaces malloc
// defines the functions below (src/testing/alloc/hooks.cc does). The symbols are weak, so nothing here depends on that
// file.
#pragma once

#include <cstdint>

// Return the address of the calling thread's number of allocations, and of the bytes that it requested. Both only grow;
// valid as long as the thread lives. The functions themselves are null if the program does not define them.
extern "C" [[gnu::weak]] const uint64_t* perfkit_thread_allocations();
extern "C" [[gnu::weak]] const uint64_t* perfkit_thread_allocated_bytes();

namespace perfkit::sys {

// Returns nullptr if nothing counts allocations.
inline const uint64_t* ThreadAllocations() {
  return perfkit_thread_allocations == nullptr ? nullptr : perfkit_thread_allocations();
}

// Returns nullptr if nothing counts the bytes of allocations.
inline const uint64_t* ThreadAllocatedBytes() {
  return perfkit_thread_allocated_bytes == nullptr ? nullptr : perfkit_thread_allocated_bytes();
}

}  // namespace perfkit::sys
