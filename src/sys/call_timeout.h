// The time until which a system call waits, in words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace perfkit::sys {

// Numbers of calls that are younger than some C libraries; the same on all architectures
// (include/uapi/asm-generic/unistd.h).
inline constexpr int64_t kEpollPwait2 = 441, kFutexWaitv = 449;

// Returns the timeout of a call that a thread of this process is in now: "timeout 16 ms", "timeout in 12 ms" if it is a
// point in time, as seen now; of a sleep "for 250 ms" or "for another 120 ms". What is left until a point in time is cut
// to two digits, so that equal waits have few texts. Returns "" if the call has no timeout, or if it can't be read
// (which is safe to try).
std::string TimeoutText(int64_t syscall, std::span<const uint64_t, 6> arguments);

// Removes that timeout from the end of what DescribeCall returns.
std::string_view WithoutTimeout(std::string_view description);

}  // namespace perfkit::sys
