// How often the calling thread has allocated, where the program wraps malloc and says so.
//
// No kernel event counts calls of malloc without privileges. A program can: whoever defines perfkit_thread_allocations
// (an object file that replaces malloc, say) is found by name, so that nothing here depends on it.
#pragma once

#include <cstdint>

// Where the calling thread's number is, for as long as the thread lives; it only grows. Null where nobody defines it.
extern "C" [[gnu::weak]] const uint64_t* perfkit_thread_allocations();

namespace perfkit::sys {

// Null: nobody counts.
inline const uint64_t* ThreadAllocations() {
  return perfkit_thread_allocations == nullptr ? nullptr : perfkit_thread_allocations();
}

}  // namespace perfkit::sys
