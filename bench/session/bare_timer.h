// The kernel's part of every sample by a clock, without perfkit: an event of this thread whose timer runs, and whose
// samples nothing records.
#pragma once

#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>

#include "src/sys/perf_abi.h"

namespace bench {

// Runs while it exists.
class BareTimer {
 public:
  explicit BareTimer(std::chrono::nanoseconds interval) {
    perfkit::sys::PerfEventAttr attr{};
    attr.size = sizeof(attr);
    attr.type = perfkit::sys::kTypeSoftware;
    attr.config = perfkit::sys::kSwCpuClock;
    attr.sample_period_or_freq = static_cast<uint64_t>(interval.count());
    attr.exclude_kernel = attr.exclude_hv = 1;
    fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, perfkit::sys::kOpenFdCloexec));
  }
  ~BareTimer() {
    if (fd_ >= 0) close(fd_);
  }
  BareTimer(const BareTimer&) = delete;
  BareTimer& operator=(const BareTimer&) = delete;

  bool opened() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace bench
