// Asks the kernel whether this process's own memory can be read, for a reader in a signal handler that must not fault.
//
// Both calls go straight to the kernel: libc's functions may have to be bound first, and set errno.
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

#include "src/base/in_handler.h"

namespace perfkit::sys {

namespace detail {

// Returns the kernel's result: minus an errno on failure.
PERFKIT_IN_HANDLER inline long CallKernel(long number, long a, long b, long c, long d, long e = 0, long f = 0) {
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  register long x4 asm("x4") = e;
  register long x5 asm("x5") = f;
  asm volatile("svc #0" : "+r"(x0) : "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5), "r"(x8) : "memory");
  return x0;
#elif defined(__riscv)
  register long a7 asm("a7") = number;
  register long a0 asm("a0") = a;
  register long a1 asm("a1") = b;
  register long a2 asm("a2") = c;
  register long a3 asm("a3") = d;
  register long a4 asm("a4") = e;
  register long a5 asm("a5") = f;
  asm volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a3), "r"(a4), "r"(a5), "r"(a7) : "memory");
  return a0;
#else
#error "only x86-64, aarch64 and riscv64 are known"
#endif
}

}  // namespace detail

// The size of a page is a multiple of this.
inline constexpr uint64_t kMinPage = 4096;

// Returns the start of the page that contains `address`.
PERFKIT_IN_HANDLER constexpr uint64_t PageOf(uint64_t address) { return address & ~(kMinPage - 1); }

// Returns true if all of the page at `page`, a multiple of kMinPage, can be read now. Takes 0.1 us, while
// process_vm_readv, pread of /proc/self/mem and mincore take 1.1 to 2 us: the kernel reads a signal mask from that
// address, returns EFAULT if it cannot, and only then rejects the invalid `how` (kernel/signal.c, rt_sigprocmask).
// Takes no lock that others wait for. Reads the page's last word, because a mask at address 0 means that there is no
// mask.
PERFKIT_IN_HANDLER inline bool CanRead(uint64_t page) {
  constexpr long kMaskBytes = 8, kNoSuchHow = -1;
  const auto last = static_cast<long>(page + kMinPage - kMaskBytes);
  return detail::CallKernel(SYS_rt_sigprocmask, kNoSuchHow, last, 0, kMaskBytes) == -EINVAL;
}

// Returns the word at `address`, which must be readable and need not be aligned.
PERFKIT_IN_HANDLER inline uint64_t WordAt(uint64_t address) {
  struct [[gnu::packed, gnu::may_alias]] Word {
    uint64_t value;
  };
  return reinterpret_cast<const Word*>(address)->value;
}

// Returns the tid of the calling thread.
PERFKIT_IN_HANDLER inline uint32_t ThisTid() {
  return static_cast<uint32_t>(detail::CallKernel(SYS_gettid, 0, 0, 0, 0));
}

// Returns true on the process's first thread.
PERFKIT_IN_HANDLER inline bool IsMainThread() {
  return ThisTid() == static_cast<uint32_t>(detail::CallKernel(SYS_getpid, 0, 0, 0, 0));
}

// Copies memory that may be unmapped at any moment. Takes 2 us. Returns false if not all of it was there, or if it is
// not permitted.
PERFKIT_IN_HANDLER inline bool CopyOwn(uint64_t address, void* to, size_t size) {
  const long self = detail::CallKernel(SYS_getpid, 0, 0, 0, 0);
  const iovec local{to, size}, remote{reinterpret_cast<void*>(address), size};
  return detail::CallKernel(SYS_process_vm_readv, self, reinterpret_cast<long>(&local), 1,
                            reinterpret_cast<long>(&remote), 1, 0) == static_cast<long>(size);
}

}  // namespace perfkit::sys
