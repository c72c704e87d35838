// Describes the system call in which a thread waits.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace perfkit::sys {

// Returns text such as "futex 0x7f12…", "read of descriptor 3" or "system call 61". `syscall` is the number on this
// machine; -1 means none.
std::string DescribeCall(int64_t syscall, std::span<const uint64_t, 6> arguments);

}  // namespace perfkit::sys
