// A table says where each call has its timeout. The thread sleeps, so the memory that its arguments point to is still
// what it passed, unless another thread writes there; the copy can't fault.
#include "src/sys/call_timeout.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "absl/strings/str_format.h"
#include "src/sys/clock.h"
#include "src/sys/own_memory.h"

namespace perfkit::sys {
namespace {

constexpr uint64_t kNsASecond = 1'000'000'000;
constexpr std::string_view kTimeout = ", timeout ", kSleep = "sleep", kSleepFor = "sleep for ";

// How a call is told its timeout.
enum class Form : uint8_t {
  kMilliseconds,  // an int; negative: none
  kTimespec,      // a pointer to a timespec; nullptr: none
  kTimeval,       // a pointer to a timeval
  kSleep,         // a pointer to a timespec
  kClockSleep,    // clock_nanosleep
  kFutex,
  kFutexWaitv,
};

struct TimedCall {
  int64_t number;
  Form form;
  uint8_t argument;
};

constexpr TimedCall kTimedCalls[] = {
    {SYS_nanosleep, Form::kSleep, 0},
    {SYS_clock_nanosleep, Form::kClockSleep, 2},
    {SYS_futex, Form::kFutex, 3},
    {kFutexWaitv, Form::kFutexWaitv, 3},
    {SYS_ppoll, Form::kTimespec, 2},
    {SYS_pselect6, Form::kTimespec, 4},
    {SYS_epoll_pwait, Form::kMilliseconds, 3},
    {kEpollPwait2, Form::kTimespec, 3},
    {SYS_rt_sigtimedwait, Form::kTimespec, 2},
#if defined(SYS_epoll_wait)
    {SYS_epoll_wait, Form::kMilliseconds, 3},
    {SYS_poll, Form::kMilliseconds, 2},
    {SYS_select, Form::kTimeval, 4},
#endif
};

struct Timeout {
  uint64_t ns = 0;
  bool is_left = false;  // what is left until a point in time
};

// Returns nullopt for times that no call accepts.
std::optional<uint64_t> Nanoseconds(int64_t seconds, int64_t ns) {
  constexpr int64_t kMaxSeconds = INT64_MAX / static_cast<int64_t>(kNsASecond) - 1;
  if (seconds < 0 || ns < 0 || ns >= static_cast<int64_t>(kNsASecond)) return std::nullopt;
  return static_cast<uint64_t>(std::min(seconds, kMaxSeconds)) * kNsASecond + static_cast<uint64_t>(ns);
}

std::optional<uint64_t> ReadTimespec(uint64_t address) {
  timespec time{};
  if (address == 0 || !CopyOwn(address, &time, sizeof time)) return std::nullopt;
  return Nanoseconds(time.tv_sec, time.tv_nsec);
}

std::optional<uint64_t> ReadTimeval(uint64_t address) {
  timeval time{};
  if (address == 0 || !CopyOwn(address, &time, sizeof time) || time.tv_usec >= 1'000'000) return std::nullopt;
  return Nanoseconds(time.tv_sec, time.tv_usec * 1000);
}

std::optional<Timeout> ReadUntil(uint64_t address, uint64_t clock) {
  const bool is_known = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME ||
                        clock == CLOCK_TAI;
  const std::optional<uint64_t> until_ns = is_known ? ReadTimespec(address) : std::nullopt;
  if (!until_ns) return std::nullopt;
  return Timeout{.ns = *until_ns - std::min(*until_ns, OwnClockNs(static_cast<clockid_t>(clock))), .is_left = true};
}

std::optional<Timeout> ReadFor(std::optional<uint64_t> ns) {
  return ns ? std::optional(Timeout{.ns = *ns}) : std::nullopt;
}

// FUTEX_WAIT waits for a time, all others until one (futex(2)). FUTEX_LOCK_PI always takes CLOCK_REALTIME.
std::optional<Timeout> ReadFutex(std::span<const uint64_t, 6> arguments) {
  const auto operation = static_cast<uint32_t>(arguments[1]) & static_cast<uint32_t>(FUTEX_CMD_MASK);
  constexpr uint32_t kLockPi2 = 13;  // FUTEX_LOCK_PI2, Linux 5.14
  const bool is_real = (arguments[1] & FUTEX_CLOCK_REALTIME) != 0 || operation == FUTEX_LOCK_PI;
  switch (operation) {
    case FUTEX_WAIT: return ReadFor(ReadTimespec(arguments[3]));
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI:
    case kLockPi2: return ReadUntil(arguments[3], is_real ? CLOCK_REALTIME : CLOCK_MONOTONIC);
    default: return std::nullopt;
  }
}

std::optional<Timeout> ReadTimeout(const TimedCall& call, std::span<const uint64_t, 6> arguments) {
  const uint64_t argument = arguments[call.argument];
  switch (call.form) {
    case Form::kMilliseconds: {
      const auto ms = static_cast<int32_t>(argument);
      return ms < 0 ? std::nullopt : ReadFor(static_cast<uint64_t>(ms) * 1'000'000);
    }
    case Form::kTimespec:
    case Form::kSleep: return ReadFor(ReadTimespec(argument));
    case Form::kTimeval: return ReadFor(ReadTimeval(argument));
    case Form::kClockSleep:
      if ((arguments[1] & TIMER_ABSTIME) == 0) return ReadFor(ReadTimespec(argument));
      return ReadUntil(argument, arguments[0]);
    case Form::kFutex: return ReadFutex(arguments);
    case Form::kFutexWaitv: return ReadUntil(argument, arguments[4]);
  }
  return std::nullopt;
}

uint64_t RoundToTwoDigits(uint64_t ns) {
  uint64_t unit = 1;
  while (ns / unit >= 100) unit *= 10;
  return ns / unit * unit;
}

// "16.67 ms"; from 1000 s on whole seconds.
std::string DurationText(uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns >= 1000 * kNsASecond) return absl::StrFormat("%.0f s", value / 1e9);
  if (ns >= kNsASecond) return absl::StrFormat("%.4g s", value / 1e9);
  if (ns >= 1'000'000) return absl::StrFormat("%.4g ms", value / 1e6);
  return ns >= 1000 ? absl::StrFormat("%.4g us", value / 1e3) : absl::StrFormat("%d ns", ns);
}

}  // namespace

std::string TimeoutText(int64_t syscall, std::span<const uint64_t, 6> arguments) {
  const auto* const call = std::ranges::find(kTimedCalls, syscall, &TimedCall::number);
  if (call == std::end(kTimedCalls)) return "";
  const std::optional<Timeout> timeout = ReadTimeout(*call, arguments);
  if (!timeout) return "";
  const bool sleeps = call->form == Form::kSleep || call->form == Form::kClockSleep;
  const std::string_view prefix = sleeps ? (timeout->is_left ? "for another " : "for ")
                                         : (timeout->is_left ? "timeout in " : "timeout ");
  return std::string(prefix) + DurationText(timeout->is_left ? RoundToTwoDigits(timeout->ns) : timeout->ns);
}

std::string_view WithoutTimeout(std::string_view description) {
  if (description.starts_with(kSleepFor)) return kSleep;
  // A file's name may have these words, too, but is followed by a parenthesis.
  return description.ends_with(')') ? description : description.substr(0, description.rfind(kTimeout));
}

}  // namespace perfkit::sys
