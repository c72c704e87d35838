// What the kernel itself makes of a breakpoint: the control of tests that count or sample one.
#pragma once

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace perfkit::testing {

// Returns what the kernel counts of 64 writes, -1 if it refuses. On some virtual machines it opens the event, which
// then stays 0: no debug register reaches the guest.
inline int64_t RawCountOfWrites() {
  volatile int word = 0;
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_BREAKPOINT;
  attr.bp_type = HW_BREAKPOINT_W;
  attr.bp_addr = reinterpret_cast<uintptr_t>(&word);
  attr.bp_len = HW_BREAKPOINT_LEN_4;
  attr.exclude_kernel = 1;
  const int fd = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  if (fd < 0) return -1;
  for (int i = 0; i < 64; ++i) word = i;
  int64_t count = -1;
  const bool complete = read(fd, &count, sizeof count) == sizeof count;
  close(fd);
  return complete ? count : -1;
}

}  // namespace perfkit::testing
