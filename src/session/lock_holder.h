// Decides whether a blocked thread waits for a lock of the C library, by the innermost calls of its stack. The futex
// alone does not prove that: other memory may contain the same words, and any program may wait in a futex there.
#pragma once

#include <span>
#include <string_view>

#include "src/sys/futex_lock.h"

namespace perfkit::session {

// A call of a stack; "" means unknown.
struct NamedCall {
  std::string_view function, module;
};

// Number of innermost frames whose calls ProvesLock needs.
inline constexpr size_t kProvingFrames = 3;

// Returns true if the stack confirms that its thread waits for a lock. `lock`: the kind of lock by the thread's futex
// call (sys::FutexLockOf). `calls`: those of the innermost kProvingFrames frames, innermost first. Thread-safe.
bool ProvesLock(sys::FutexLock lock, std::span<const NamedCall> calls);

}  // namespace perfkit::session
