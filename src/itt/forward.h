// How libperfkit_itt.so passes the ITT calls of its process to a program that links perfkit. ittnotify loads a library,
// and cannot load a program; all that the library does for the program is to hand over each copy of ittnotify. A C
// interface, because the two may contain different versions of perfkit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "src/itt/abi.h"

namespace perfkit::itt {

inline constexpr uint32_t kForwardVersion = 1;
inline constexpr char kForwardName[] = "perfkit_itt_forward";

// Later versions append members.
struct Forward {
  uint32_t size = sizeof(Forward);
  uint32_t version = kForwardVersion;  // Another one if what is there has another meaning.
  // As __itt_api_init: connects a copy of ittnotify to the program. May be called more than once for a copy, on any
  // thread.
  void (*connect)(Global* global, int groups) = nullptr;
};
#if defined(__LP64__)
static_assert(sizeof(Forward) == 16 && offsetof(Forward, connect) == 8);
#endif

// The type of perfkit_itt_forward. From now on, the library hands over each copy of ittnotify that it is called by,
// first those of before, and leaves no table. `forward` must live until the process ends. Returns 0, or the version
// that the library understands if that is another one; then it changes nothing.
using ForwardFunction = uint32_t(const Forward* forward);

// The environment variable that tells libperfkit_itt.so to collect nothing of its own: for programs that a program
// with an IttCollection starts, which inherit its INTEL_LIBITTNOTIFY64.
inline constexpr char kForwardOnly[] = "PERFKIT_ITT_FORWARD_ONLY";

}  // namespace perfkit::itt
