// What the names in a stack prove about a moment of its thread.
#pragma once

#include <cstdint>
#include <string>

#include "perfkit/profile.h"

namespace perfkit::profile {

// Returns whether the thread was in the allocator: a call of malloc, free, operator new or their like, made by the
// program, or by a library of the system on its behalf.
bool IsInAllocator(const Profile& profile, uint32_t stack);

// Returns whether the thread was in a call that takes a lock: such as pthread_mutex_lock, but not sem_wait.
bool IsInLockCall(const Profile& profile, uint32_t stack);

// Returns whether the kernel was handling a page fault.
bool IsInPageFault(const Profile& profile, uint32_t stack);

// Returns whether the thread was in the kernel.
bool IsInKernel(const Profile& profile, uint32_t stack);

// Returns the innermost function of the program's own: those of the C and C++ libraries are left out. "" if none is
// known.
std::string OwnFunction(const Profile& profile, uint32_t stack);

}  // namespace perfkit::profile
