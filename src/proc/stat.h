// What /proc/PID/stat says of a process (man proc_pid_stat).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace perfkit::proc {

struct Stat {
  pid_t parent = 0;
  // Where the program's code, data, heap, stack, arguments and environment lie. Another text after exec; the same one
  // in a forked child. Zeros if this user may not trace the process.
  std::string image;
  bool is_of_kernel = false;  // A thread of the kernel.
  uint64_t start_ticks = 0;   // When it was started, by CLOCK_BOOTTIME, in units of 10 ms.

  bool operator==(const Stat&) const = default;
};

// Parses the file; nullopt if it is malformed.
std::optional<Stat> ParseStat(std::string_view text);

// Reads the file of process `pid`; nullopt if there is none.
std::optional<Stat> ReadStat(pid_t pid, const std::string& proc = "/proc");

// Returns when process `pid` was started, to some 10 ms, by CLOCK_REALTIME as it is set now; nullopt if there is none.
std::optional<uint64_t> ReadStartNs(pid_t pid, const std::string& proc = "/proc");

}  // namespace perfkit::proc
