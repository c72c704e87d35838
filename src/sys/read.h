// read(2) for the hot paths: inline, and still through the table in which tests can put a fake.
//
// After a system call the processor has forgotten where calls return to (the kernel's guard against speculation), and
// each return that then follows costs some 20 cycles. So the fewer functions lie between the system call and the user's
// code, the better: this one is none.
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "src/sys/kernel.h"

namespace perfkit::sys {

// Not libc's: that one is a cancellation point, which nothing that is noexcept may be, and in a program with threads
// pays for being one. errno is set as libc would.
[[gnu::always_inline]] inline ssize_t ReadDirectly(int fd, void* buffer, size_t size) noexcept {
#if defined(__x86_64__)
  ssize_t result = SYS_read;
  asm volatile("syscall" : "+a"(result) : "D"(fd), "S"(buffer), "d"(size) : "rcx", "r11", "memory");
  if (result >= 0) [[likely]]
    return result;
  errno = static_cast<int>(-result);
  return -1;
#else
  return ::syscall(SYS_read, fd, buffer, size);
#endif
}

// What kernel().read does, without the call if the table holds the real kernel.
[[gnu::always_inline]] inline ssize_t Read(int fd, void* buffer, size_t size) noexcept {
  const auto read = kernel().read;
  if (read == kLinux.read) [[likely]]
    return ReadDirectly(fd, buffer, size);
  return read(fd, buffer, size);
}

}  // namespace perfkit::sys
