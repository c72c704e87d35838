// The CPU that a thread runs on, as a word in its own memory: restartable sequences (Linux 4.18, glibc 2.35).
#pragma once

#include <cstdint>

namespace perfkit::sys {

// Returns the word in which the kernel keeps the calling thread's CPU number; valid while the thread lives. If libc
// registers no rseq area, returns a word with the value ~0u.
const uint32_t* CurrentCpuWord();

}  // namespace perfkit::sys
