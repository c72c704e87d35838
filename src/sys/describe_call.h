// What a thread waits for, by the system call that it is blocked in.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace perfkit::sys {

// "futex 0x7f12…", "read of descriptor 3", "system call 61". `syscall`: its number on this machine; -1: none.
std::string DescribeCall(int64_t syscall, std::span<const uint64_t, 6> arguments);

}  // namespace perfkit::sys
