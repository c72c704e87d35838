// Has names for the calls in which threads usually sleep, and numbers for all others.
#include "src/sys/describe_call.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "absl/strings/str_format.h"
#include "src/sys/call_timeout.h"
#include "src/sys/files.h"
#include "src/sys/own_memory.h"

namespace perfkit::sys {
namespace {

// What the arguments of a call say.
enum class CallKind : uint8_t {
  kPlain,       // nothing that is shown
  kNone,        // no call at all
  kTime,        // a time to sleep
  kAddress,     // the first one is an address
  kDescriptor,  // the first one is a descriptor
  kPoll,        // an array of pollfd, and how many
  kSelect,      // how many descriptors
  kFutexes,     // an array of futex_waitv, and how many
  kFileLock,    // a descriptor
  kControl,     // a descriptor, and a command of fcntl
};

struct WaitingCall {
  int64_t number;
  CallKind kind;
  std::string_view text;
};

// Younger than some C libraries; the same on all architectures (include/uapi/asm-generic/unistd.h).
constexpr int64_t kIoUringEnter = 426;

constexpr WaitingCall kWaitingCalls[] = {
    // /proc/PID/syscall has -1 for a thread that waits elsewhere, in a page fault for example (man proc).
    {-1, CallKind::kNone, "outside of a system call"},  {SYS_futex, CallKind::kAddress, "futex"},
    {SYS_read, CallKind::kDescriptor, "read of"},       {SYS_readv, CallKind::kDescriptor, "read of"},
    {SYS_pread64, CallKind::kDescriptor, "read of"},    {SYS_write, CallKind::kDescriptor, "write to"},
    {SYS_writev, CallKind::kDescriptor, "write to"},    {SYS_pwrite64, CallKind::kDescriptor, "write to"},
    {SYS_nanosleep, CallKind::kTime, "sleep"},          {SYS_clock_nanosleep, CallKind::kTime, "sleep"},
    {SYS_epoll_pwait, CallKind::kDescriptor, "epoll"},  {SYS_ppoll, CallKind::kPoll, "poll of"},
    {SYS_pselect6, CallKind::kSelect, "select of"},     {SYS_wait4, CallKind::kPlain, "child process"},
    {SYS_waitid, CallKind::kPlain, "child process"},    {SYS_fsync, CallKind::kDescriptor, "fsync of"},
    {SYS_fdatasync, CallKind::kDescriptor, "fsync of"}, {SYS_flock, CallKind::kFileLock, "file lock of"},
    {SYS_connect, CallKind::kDescriptor, "connect of"}, {SYS_recvfrom, CallKind::kDescriptor, "receive on"},
    {SYS_recvmsg, CallKind::kDescriptor, "receive on"}, {SYS_sendto, CallKind::kDescriptor, "send on"},
    {SYS_sendmsg, CallKind::kDescriptor, "send on"},    {SYS_accept, CallKind::kDescriptor, "accept on"},
    {SYS_accept4, CallKind::kDescriptor, "accept on"},  {SYS_rt_sigtimedwait, CallKind::kPlain, "signal"},
    {SYS_rt_sigsuspend, CallKind::kPlain, "signal"},    {SYS_fcntl, CallKind::kControl, "file lock of"},
    {kFutexWaitv, CallKind::kFutexes, "one of"},        {kEpollPwait2, CallKind::kDescriptor, "epoll"},
    {kIoUringEnter, CallKind::kDescriptor, "io_uring of"},
#if defined(SYS_epoll_wait)
    {SYS_epoll_wait, CallKind::kDescriptor, "epoll"},   {SYS_poll, CallKind::kPoll, "poll of"},
    {SYS_select, CallKind::kSelect, "select of"},       {SYS_pause, CallKind::kPlain, "signal"},
#endif
};

// "3", or with its file "3 (pipe:[1234])".
std::string DescriptorText(int descriptor, std::optional<pid_t> tid) {
  std::string file;
  if (tid) {
    const std::string path = absl::StrFormat("/proc/self/task/%d/fd/%d", *tid, descriptor);
    file = LinkTarget(path);
    if (file.starts_with('/') && IsFifo(path)) file.insert(0, "FIFO ");
  }
  return file.empty() ? absl::StrFormat("%d", descriptor) : absl::StrFormat("%d (%s)", descriptor, file);
}

std::string PollText(uint64_t address, uint64_t count, std::optional<pid_t> tid) {
  constexpr size_t kMaxShown = 3;
  std::array<pollfd, kMaxShown> polled{};
  const size_t shown = std::min<uint64_t>(count, kMaxShown);
  if (!tid || shown == 0 || !CopyOwn(address, reinterpret_cast<std::byte*>(polled.data()), shown * sizeof(pollfd))) {
    return absl::StrFormat("%d descriptor%s", count, count == 1 ? "" : "s");
  }
  if (count == 1) return "descriptor " + DescriptorText(polled[0].fd, tid);
  std::string text = absl::StrFormat("%d descriptors:", count);
  for (size_t i = 0; i < shown; ++i) text += (i == 0 ? " " : ", ") + DescriptorText(polled[i].fd, tid);
  return count > shown ? text + ", ..." : text;
}

// "one of 2 futexes 0x7f12 0x7f16", without addresses if they can't be read.
std::string FutexesText(uint64_t address, uint64_t count, std::optional<pid_t> tid) {
  struct Waiter {  // futex_waitv of linux/futex.h, which older headers lack
    uint64_t value, address;
    uint32_t flags, reserved;
  };
  constexpr size_t kMaxShown = 3;
  std::array<Waiter, kMaxShown> waiters{};
  const size_t shown = std::min<uint64_t>(count, kMaxShown);
  std::string text = absl::StrFormat("%d futex%s", count, count == 1 ? "" : "es");
  if (!tid || shown == 0 || !CopyOwn(address, reinterpret_cast<std::byte*>(waiters.data()), shown * sizeof(Waiter))) {
    return text;
  }
  for (size_t i = 0; i < shown; ++i) absl::StrAppendFormat(&text, " 0x%x", waiters[i].address);
  return count > shown ? text + " ..." : text;
}

bool IsFileLock(const WaitingCall& call, std::span<const uint64_t, 6> arguments) {
  const auto command = static_cast<int>(arguments[1]);
  return call.kind == CallKind::kFileLock || command == F_SETLKW || command == F_OFD_SETLKW;
}

// nullptr: no call that is known.
const WaitingCall* FindCall(int64_t syscall) {
  const auto* const call = std::find_if(std::begin(kWaitingCalls), std::end(kWaitingCalls),
                                        [&](const WaitingCall& waiting) { return waiting.number == syscall; });
  return call != std::end(kWaitingCalls) ? call : nullptr;
}

std::string Describe(int64_t syscall, std::span<const uint64_t, 6> arguments, std::optional<pid_t> tid) {
  const WaitingCall* const call = FindCall(syscall);
  if (call == nullptr) return absl::StrFormat("system call %d", syscall);
  switch (call->kind) {
    case CallKind::kPlain:
    case CallKind::kNone:
    case CallKind::kTime: break;
    case CallKind::kAddress: return absl::StrFormat("%s 0x%x", call->text, arguments[0]);
    case CallKind::kFutexes: return absl::StrFormat("%s %s", call->text, FutexesText(arguments[0], arguments[1], tid));
    case CallKind::kFileLock:
    case CallKind::kControl:
      if (!IsFileLock(*call, arguments)) return absl::StrFormat("system call %d", syscall);
      [[fallthrough]];
    case CallKind::kDescriptor:
      return absl::StrFormat("%s descriptor %s", call->text, DescriptorText(static_cast<int>(arguments[0]), tid));
    case CallKind::kPoll: return absl::StrFormat("%s %s", call->text, PollText(arguments[0], arguments[1], tid));
    case CallKind::kSelect: return absl::StrFormat("%s %d descriptors", call->text, arguments[0]);
  }
  return std::string(call->text);
}

}  // namespace

std::string DescribeCall(int64_t syscall, std::span<const uint64_t, 6> arguments) {
  return Describe(syscall, arguments, std::nullopt);
}

std::string DescribeCall(int64_t syscall, std::span<const uint64_t, 6> arguments, pid_t tid) {
  const std::string timeout = TimeoutText(syscall, arguments);
  if (timeout.empty()) return Describe(syscall, arguments, tid);
  return Describe(syscall, arguments, tid) + (timeout.starts_with("for ") ? " " : ", ") + timeout;
}

AwaitedThing AwaitedThingOf(int64_t syscall, std::span<const uint64_t, 6> arguments) {
  const WaitingCall* const call = FindCall(syscall);
  if (call == nullptr) return AwaitedThing::kOther;
  switch (call->kind) {
    case CallKind::kPlain: break;
    case CallKind::kNone: return AwaitedThing::kNoCall;
    case CallKind::kTime: return AwaitedThing::kTime;
    case CallKind::kAddress:
    case CallKind::kFutexes: return AwaitedThing::kFutex;
    case CallKind::kFileLock:
    case CallKind::kControl: return IsFileLock(*call, arguments) ? AwaitedThing::kFileLock : AwaitedThing::kOther;
    case CallKind::kDescriptor: return AwaitedThing::kDescriptor;
    case CallKind::kPoll: return arguments[1] == 0 ? AwaitedThing::kTime : AwaitedThing::kDescriptor;
    case CallKind::kSelect: return arguments[0] == 0 ? AwaitedThing::kTime : AwaitedThing::kDescriptor;
  }
  return AwaitedThing::kOther;
}

}  // namespace perfkit::sys
