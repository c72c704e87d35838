// The table of system calls, the only way from perfkit to Linux.
//
// Each call of perfkit goes through `kernel()`, so that a test can install a fake, or let the n-th call fail
// (tests/support/fake_kernel.h). A call through the table costs the same as a direct call. One of the mutable globals
// of this library (docs/design.md): tests change it, and DescriptorCheck in a forked child.
#pragma once

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "src/sys/perf_abi.h"

namespace perfkit::sys {

// Each member has the signature, the return value and the errno of the call of the same name.
struct Kernel {
  int (*perf_event_open)(const PerfEventAttr* attr, pid_t pid, int cpu, int group_fd, unsigned long flags);
  int (*ioctl)(int fd, unsigned long request, unsigned long argument);
  ssize_t (*read)(int fd, void* buffer, size_t size);
  ssize_t (*pread)(int fd, void* buffer, size_t size, off_t offset);
  ssize_t (*write)(int fd, const void* buffer, size_t size);
  int (*close)(int fd);
  void* (*mmap)(void* address, size_t size, int protection, int flags, int fd, off_t offset);
  int (*munmap)(void* address, size_t size);
  int (*open)(const char* path, int flags);
  int (*fstat)(int fd, struct stat* out);
  int (*fchmod)(int fd, mode_t mode);
  int (*rename)(const char* from, const char* to);
  int (*unlink)(const char* path);
  int (*fcntl)(int fd, int command, unsigned long argument);
  int (*pipe2)(int fds[2], int flags);
  int (*clock_gettime)(clockid_t clock, timespec* out);
  int (*nanosleep)(const timespec* time);
  int (*getrusage)(int who, rusage* out);
  int (*getrlimit)(int resource, rlimit* out);
  int (*sigaction)(int signal, const struct sigaction* action, struct sigaction* before);
  int (*sigprocmask)(int how, const sigset_t* set, sigset_t* before);  // For the calling thread.
  pid_t (*gettid)();
  pid_t (*getpid)();
  uid_t (*geteuid)();
  int (*capget)(cap_user_header_t header, cap_user_data_t data);
  int (*prctl)(int option, unsigned long argument);
  pid_t (*fork)();
  int (*execvp)(const char* file, char* const arguments[]);
  pid_t (*wait4)(pid_t pid, int* status, int options, rusage* usage);
  int (*kill)(pid_t pid, int signal);
  int (*epoll_create1)(int flags);
  int (*epoll_ctl)(int epoll, int operation, int fd, epoll_event* event);
  int (*epoll_wait)(int epoll, epoll_event* events, int most, int timeout_ms);
};

// The real table: each member calls Linux.
extern const Kernel kLinux;

namespace detail {
extern constinit std::atomic<const Kernel*> kernel_in_force;
}

// Returns the table in force. Thread-safe. Acquire pairs with the release in ExchangeKernel: a thread that sees a fake
// table sees its members.
inline const Kernel& kernel() { return *detail::kernel_in_force.load(std::memory_order_acquire); }

// Puts `table` into force, which must outlive its use, and returns the previous one.
const Kernel* ExchangeKernel(const Kernel* table);

// Calls `call` again as long as a signal interrupts it.
template <class Call>
auto RetryInterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace perfkit::sys
