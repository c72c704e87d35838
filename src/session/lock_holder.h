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

// How many innermost frames ProvesLock needs.
inline constexpr size_t kProvingFrames = 3;

// Returns true if a thread with this stack waits for a lock of kind `lock`, as its futex indicates. `calls`: innermost
// first.
bool ProvesLock(sys::FutexLock lock, std::span<const NamedCall> calls);

}  // namespace perfkit::session
