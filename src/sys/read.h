// read(2) for the hot paths: inline, and still through the table in which tests can put a fake. Counts what it reads.
//
// After a system call the processor's prediction of return addresses is empty (the kernel clears it against speculation
// attacks), so each return that follows costs some 20 cycles. The fewer functions lie between the system call and the
// user's code, the better; this one adds none.
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "src/sys/kernel.h"

namespace perfkit::sys {

// The bytes that perfkit itself has read on this thread. The kernel's account of the thread's reads has them too
// (/proc/thread-self/io). Initial-exec: one addition, also in a library.
extern constinit thread_local uint64_t own_bytes_read __attribute__((tls_model("initial-exec")));

// Adds the result of a read to them, and returns it.
[[gnu::always_inline]] inline ssize_t CountOwn(ssize_t result) noexcept {
  if (result > 0) own_bytes_read += static_cast<uint64_t>(result);
  return result;
}

// Does not call libc's read: that is a cancellation point, which a noexcept function must not be, and which costs time
// in a program with threads. Sets errno as libc would.
[[gnu::always_inline]] inline ssize_t ReadDirectly(int fd, void* buffer, size_t size) noexcept {
#if defined(__x86_64__)
  ssize_t result = SYS_read;
  asm volatile("syscall" : "+a"(result) : "D"(fd), "S"(buffer), "d"(size) : "rcx", "r11", "memory");
  if (result >= 0) [[likely]]
    return CountOwn(result);
  errno = static_cast<int>(-result);
  return -1;
#else
  return CountOwn(::syscall(SYS_read, fd, buffer, size));
#endif
}

// As kernel().read, without the indirect call if the table holds the real kernel.
[[gnu::always_inline]] inline ssize_t Read(int fd, void* buffer, size_t size) noexcept {
  const auto read = kernel().read;
  if (read == kLinux.read) [[likely]]
    return ReadDirectly(fd, buffer, size);
  return read(fd, buffer, size);
}

}  // namespace perfkit::sys
