// Describes the system call in which a thread waits.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>

namespace perfkit::sys {

// Returns text such as "futex 0x7f12…", "read of descriptor 3" or "system call 61". `syscall` is the number on this
// machine; -1 means none.
std::string DescribeCall(int64_t syscall, std::span<const uint64_t, 6> arguments);

// The same for a thread of this process that is in the call now, with the file of each descriptor as the kernel names
// it: "read of descriptor 3 (pipe:[1234])", "read of descriptor 3 (FIFO /tmp/in)", "poll of 2 descriptors: 3
// (/dev/tty), 4 (socket:[5678])". A number may be another file's by now if it was closed and opened anew during the
// call. Timeouts come last (TimeoutText): "sleep for 250 ms", "epoll descriptor 4, timeout 16 ms", "futex 0x7f12...,
// timeout in 12 ms".
std::string DescribeCall(int64_t syscall, std::span<const uint64_t, 6> arguments, pid_t tid);

// What threads wait for in a system call.
enum class AwaitedThing : uint8_t {
  kOther,   // none of the others
  kNoCall,  // -1: blocked outside of a system call, in a page fault for example
  kFutex,
  kDescriptor,
  kTime,
  kFileLock,  // of flock or fcntl
};

// Returns what threads wait for in this call. Arguments as of DescribeCall: poll and select of no descriptors wait for
// a time.
AwaitedThing AwaitedThingOf(int64_t syscall, std::span<const uint64_t, 6> arguments);

}  // namespace perfkit::sys
