// Timeouts of system calls, in words.
#include "src/sys/call_timeout.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "src/sys/clock.h"
#include "src/sys/describe_call.h"

namespace perfkit::sys {
namespace {

using Arguments = std::array<uint64_t, 6>;

constexpr uint64_t kMinusOne = UINT64_MAX;

uint64_t AddressOf(const auto& object) { return reinterpret_cast<uintptr_t>(&object); }

timespec TimeOf(uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

TEST_CASE("timeouts that are a duration", "[call_timeout]") {
  const timespec time{0, 16'666'667}, long_time{7200, 0}, short_time{0, 500};
  const uint64_t at = AddressOf(time);
  CHECK(TimeoutText(SYS_nanosleep, Arguments{at}) == "for 16.67 ms");
  CHECK(TimeoutText(SYS_clock_nanosleep, Arguments{CLOCK_MONOTONIC, 0, at}) == "for 16.67 ms");
  CHECK(TimeoutText(SYS_clock_nanosleep, Arguments{CLOCK_REALTIME, 0, AddressOf(long_time)}) == "for 7200 s");
  CHECK(TimeoutText(SYS_futex, Arguments{1, FUTEX_WAIT_PRIVATE, 2, AddressOf(short_time)}) == "timeout 500 ns");
  CHECK(TimeoutText(SYS_ppoll, Arguments{0, 0, at}) == "timeout 16.67 ms");
  CHECK(TimeoutText(SYS_pselect6, Arguments{0, 0, 0, 0, at}) == "timeout 16.67 ms");
  CHECK(TimeoutText(SYS_epoll_pwait, Arguments{3, 0, 1, 16}) == "timeout 16 ms");
  CHECK(TimeoutText(441, Arguments{3, 0, 1, at}) == "timeout 16.67 ms");  // epoll_pwait2
  CHECK(TimeoutText(SYS_rt_sigtimedwait, Arguments{0, 0, at}) == "timeout 16.67 ms");
#if defined(SYS_poll)
  const timeval old_time{1, 500'000};
  CHECK(TimeoutText(SYS_poll, Arguments{0, 0, 250}) == "timeout 250 ms");
  CHECK(TimeoutText(SYS_poll, Arguments{0, 0, 1500}) == "timeout 1.5 s");
  CHECK(TimeoutText(SYS_epoll_wait, Arguments{3, 0, 1, 16}) == "timeout 16 ms");
  CHECK(TimeoutText(SYS_select, Arguments{0, 0, 0, 0, AddressOf(old_time)}) == "timeout 1.5 s");
#endif
}

TEST_CASE("calls without a timeout, and timeouts that can't be read, have no text", "[call_timeout]") {
  const timespec invalid{0, 2'000'000'000}, negative{-1, 0};
  CHECK(TimeoutText(-1, Arguments{}).empty());
  CHECK(TimeoutText(SYS_read, Arguments{3}).empty());
  CHECK(TimeoutText(SYS_futex, Arguments{1, FUTEX_WAIT_PRIVATE, 2, 0}).empty());
  CHECK(TimeoutText(SYS_futex, Arguments{1, FUTEX_WAKE_PRIVATE, 2, AddressOf(negative)}).empty());
  CHECK(TimeoutText(SYS_ppoll, Arguments{0, 0, 0}).empty());
  CHECK(TimeoutText(SYS_epoll_pwait, Arguments{3, 0, 1, kMinusOne}).empty());
  CHECK(TimeoutText(SYS_epoll_pwait, Arguments{3, 0, 1, 0xffff'ffff}).empty());
  for (const uint64_t address : {uint64_t{8}, kMinusOne - 7, AddressOf(invalid), AddressOf(negative)}) {
    CHECK(TimeoutText(SYS_nanosleep, Arguments{address}).empty());
    CHECK(TimeoutText(SYS_clock_nanosleep, Arguments{CLOCK_MONOTONIC, TIMER_ABSTIME, address}).empty());
  }
  // A CPU clock may be that of another thread or process.
  CHECK(TimeoutText(SYS_clock_nanosleep, Arguments{kMinusOne, TIMER_ABSTIME, AddressOf(invalid)}).empty());
}

// So much later than this test can take: "in" what is left, cut to two digits.
TEST_CASE("timeouts that are a point in time have what is left", "[call_timeout][law]") {
  constexpr uint64_t kDay = 86'400'000'000'000;
  const auto in = [](clockid_t clock) { return TimeOf(ClockNs(clock) + kDay); };
  const timespec real = in(CLOCK_REALTIME), monotonic = in(CLOCK_MONOTONIC), boot = in(CLOCK_BOOTTIME), past{1, 0};
  const std::vector<std::pair<std::string, std::string>> texts = {
      {TimeoutText(SYS_clock_nanosleep, Arguments{CLOCK_REALTIME, TIMER_ABSTIME, AddressOf(real)}), "for another "},
      {TimeoutText(SYS_clock_nanosleep, Arguments{CLOCK_BOOTTIME, TIMER_ABSTIME, AddressOf(boot)}), "for another "},
      {TimeoutText(SYS_futex, Arguments{1, FUTEX_WAIT_BITSET_PRIVATE, 2, AddressOf(monotonic)}), "timeout in "},
      {TimeoutText(SYS_futex,
                   Arguments{1, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 2, AddressOf(real)}),
       "timeout in "},
      {TimeoutText(SYS_futex, Arguments{1, FUTEX_LOCK_PI_PRIVATE, 0, AddressOf(real)}), "timeout in "},
      {TimeoutText(SYS_futex, Arguments{1, 13, 0, AddressOf(monotonic)}), "timeout in "},  // FUTEX_LOCK_PI2
      {TimeoutText(449, Arguments{1, 1, 0, AddressOf(monotonic), CLOCK_MONOTONIC}), "timeout in "}};
  for (const auto& [text, prefix] : texts) {
    INFO(text);
    // 86,400 s less what this has taken; a machine that stops for hours has less left.
    CHECK((text == prefix + "86000 s" || text == prefix + "85000 s"));
  }
  CHECK(TimeoutText(SYS_clock_nanosleep, Arguments{CLOCK_MONOTONIC, TIMER_ABSTIME, AddressOf(past)}) ==
        "for another 0 ns");
}

TEST_CASE("a description has the timeout last, and can do without", "[call_timeout][law]") {
  const timespec time{0, 250'000'000};
  const auto tid = static_cast<pid_t>(syscall(SYS_gettid));
  const std::string sleep = DescribeCall(SYS_nanosleep, Arguments{AddressOf(time)}, tid);
  const std::string futex = DescribeCall(SYS_futex, Arguments{0x7f12, FUTEX_WAIT, 0, AddressOf(time)}, tid);
  CHECK(sleep == "sleep for 250 ms");
  CHECK(futex == "futex 0x7f12, timeout 250 ms");
  CHECK(DescribeCall(SYS_nanosleep, Arguments{AddressOf(time)}) == "sleep");  // of any process
  CHECK(WithoutTimeout(sleep) == "sleep");
  CHECK(WithoutTimeout(futex) == "futex 0x7f12");
  CHECK(WithoutTimeout("sleep for another 20 ms") == "sleep");
  CHECK(WithoutTimeout("read of descriptor 3 (/tmp/a, timeout b)") == "read of descriptor 3 (/tmp/a, timeout b)");
  CHECK(WithoutTimeout("futex 0x7f12") == "futex 0x7f12");
  CHECK(WithoutTimeout("").empty());
}

}  // namespace
}  // namespace perfkit::sys
