// Whether a blocked thread waits for a lock of the C library: the innermost calls of its stack prove it. Any memory may
// hold words like those of a lock, and any program may wait in a futex for it.
#pragma once

#include <span>
#include <string_view>

#include "src/sys/futex_lock.h"

namespace perfkit::session {

// A call of a stack; "": not known.
struct NamedCall {
  std::string_view function, module;
};

// The frames whose calls are enough for ProvesLock.
inline constexpr size_t kProvingFrames = 3;

// Returns whether a thread with this stack, innermost call first, waits for the lock that its futex looks like.
bool ProvesLock(sys::FutexLock lock, std::span<const NamedCall> calls);

}  // namespace perfkit::session
