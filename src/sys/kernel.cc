// The real system calls of the table.
#include "src/sys/kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/in_handler.h"
#include "src/sys/read.h"
#include "src/sys/uncancelled.h"

namespace perfkit::sys {
namespace {

int PerfEventOpen(const PerfEventAttr* attr, pid_t pid, int cpu, int group_fd, unsigned long flags) {
  return static_cast<int>(::syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags));
}

int Ioctl(int fd, unsigned long request, unsigned long argument) { return ::ioctl(fd, request, argument); }

// The functions of libc from Open to EpollWait are cancellation points, and perfkit calls them in destructors.

// Files that this creates may be read and written by all users, as far as the umask permits.
int Open(const char* path, int flags) {
  const Uncancelled uncancelled;
  return ::open(path, flags | O_CLOEXEC, 0666);
}

int Close(int fd) {
  const Uncancelled uncancelled;
  return ::close(fd);
}

// Not libc's pread, for the reasons of ReadDirectly.
ssize_t Pread(int fd, void* buffer, size_t size, off_t offset) {
  return CountOwn(::syscall(SYS_pread64, fd, buffer, size, offset));
}

ssize_t Write(int fd, const void* buffer, size_t size) {
  const Uncancelled uncancelled;
  return ::write(fd, buffer, size);
}

int Fcntl(int fd, int command, unsigned long argument) {
  const Uncancelled uncancelled;
  return ::fcntl(fd, command, argument);
}

int Nanosleep(const timespec* time) {
  const Uncancelled uncancelled;
  return ::nanosleep(time, nullptr);
}

// glibc declares wait4 with a null check that would become part of the type of the table's entry.
pid_t Wait4(pid_t pid, int* status, int options, rusage* usage) {
  const Uncancelled uncancelled;
  return ::wait4(pid, status, options, usage);
}

int EpollWait(int fd, epoll_event* events, int most, int timeout_ms) {
  const Uncancelled uncancelled;
  return ::epoll_wait(fd, events, most, timeout_ms);
}

int Getrusage(int who, rusage* out) { return ::getrusage(static_cast<__rusage_who>(who), out); }

int Getrlimit(int resource, rlimit* out) { return ::getrlimit(static_cast<__rlimit_resource>(resource), out); }

// libc has it, but no header of libc declares it.
int Capget(cap_user_header_t header, cap_user_data_t data) {
  return static_cast<int>(::syscall(SYS_capget, header, data));
}

int Prctl(int option, unsigned long argument) { return ::prctl(option, argument, 0ul, 0ul, 0ul); }

// The kernel's struct sigaction on x86-64 (arch/x86/include/uapi/asm/signal.h).
struct KernelAction {
  void* handler;
  unsigned long flags;
  void (*restorer)();
  unsigned long mask;
};

// Signals that a full sigset_t lacks: SIGKILL and SIGSTOP, which cannot be blocked, and 32 to 34: libc uses two or
// three of them for its own threads.
constexpr unsigned long kUnnamed = 1ul << (SIGKILL - 1) | 1ul << (SIGSTOP - 1) | 7ul << 31;

// Calls libc's sigaction, which adds the way back from a handler, and then the system call. Under a sanitizer, libc's
// alone would install the sanitizer's handler in front, which does not work on a thread that is just starting.
int Sigaction(int signal, const struct sigaction* action, struct sigaction* before) {
  const int result = ::sigaction(signal, action, before);
#if defined(__x86_64__)
  KernelAction now{};
  if (result != 0 || action == nullptr || ::syscall(SYS_rt_sigaction, signal, nullptr, &now, sizeof(now.mask)) != 0) {
    return result;
  }
  now.handler = reinterpret_cast<void*>(action->sa_handler);
  // A mask with all signals that libc lets a caller name means all signals. Libc's own ones cancel threads.
  if ((now.mask | kUnnamed) == ~0ul) now.mask = ~0ul;
  ::syscall(SYS_rt_sigaction, signal, &now, nullptr, sizeof(now.mask));
#endif
  return result;
}

int Sigprocmask(int how, const sigset_t* set, sigset_t* before) {
  const int error = ::pthread_sigmask(how, set, before);
  if (error == 0) return 0;
  errno = error;
  return -1;
}

PERFKIT_IN_HANDLER pid_t Gettid() { return static_cast<pid_t>(::syscall(SYS_gettid)); }

}  // namespace

constinit thread_local uint64_t own_bytes_read = 0;

constinit const Kernel kLinux = {
    .perf_event_open = PerfEventOpen,
    .ioctl = Ioctl,
    .read = ReadDirectly,
    .pread = Pread,
    .write = Write,
    .close = Close,
    .mmap = ::mmap,
    .munmap = ::munmap,
    .open = Open,
    .fstat = ::fstat,
    .fchmod = ::fchmod,
    .rename = ::rename,
    .unlink = ::unlink,
    .fcntl = Fcntl,
    .pipe2 = ::pipe2,
    .clock_gettime = ::clock_gettime,
    .nanosleep = Nanosleep,
    .getrusage = Getrusage,
    .getrlimit = Getrlimit,
    .sigaction = Sigaction,
    .sigprocmask = Sigprocmask,
    .gettid = Gettid,
    .getpid = ::getpid,
    .geteuid = ::geteuid,
    .capget = Capget,
    .prctl = Prctl,
    .fork = ::fork,
    .execvp = ::execvp,
    .wait4 = Wait4,
    .kill = ::kill,
    .epoll_create1 = ::epoll_create1,
    .epoll_ctl = ::epoll_ctl,
    .epoll_wait = EpollWait,
};

constinit std::atomic<const Kernel*> detail::kernel_in_force{&kLinux};

const Kernel* ExchangeKernel(const Kernel* table) {
  return detail::kernel_in_force.exchange(table, std::memory_order_acq_rel);
}

}  // namespace perfkit::sys
