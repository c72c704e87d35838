// The CPU that a thread runs on, as a word in its own memory: restartable sequences (Linux 4.18, glibc 2.35).
#pragma once

#include <cstdint>

namespace perfkit::sys {

// Where the kernel keeps the calling thread's CPU number; valid while the thread lives. Where libc registers no rseq
// area: a word that says ~0u.
const uint32_t* CurrentCpuWord();

}  // namespace perfkit::sys
