// The kernel's part of a live stack, without perfkit: an event of this thread whose samples send it a SIGTRAP, into a
// ring that is not read, and a handler that counts.
#pragma once

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "perfkit/record.h"
#include "src/sys/perf_abi.h"

namespace bench {

class BareSignal {
 public:
  BareSignal() {
    perfkit::sys::PerfEventAttr attr{};
    attr.size = sizeof(attr);
    attr.type = perfkit::sys::kTypeSoftware;
    attr.config = perfkit::sys::kSwCpuClock;
    attr.sample_period_or_freq = 1000;
    attr.freq = attr.disabled = attr.exclude_kernel = attr.exclude_hv = attr.sigtrap = attr.remove_on_exec = 1;
    attr.sample_type = perfkit::kSampleIp | perfkit::kSampleTid | perfkit::kSampleTime;
    fd_ = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, perfkit::sys::kOpenFdCloexec));
    if (fd_ >= 0) ring_ = mmap(nullptr, kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  }
  ~BareSignal() {
    if (ring_ != MAP_FAILED) munmap(ring_, kRingBytes);
    if (fd_ >= 0) close(fd_);
  }
  BareSignal(const BareSignal&) = delete;
  BareSignal& operator=(const BareSignal&) = delete;

  bool opened() const { return ring_ != MAP_FAILED; }
  bool Start() {
    struct sigaction mine {};
    mine.sa_sigaction = [](int, siginfo_t*, void*) { signals = signals + 1; };
    mine.sa_flags = SA_SIGINFO;
    return sigaction(SIGTRAP, &mine, &before_) == 0 && ioctl(fd_, perfkit::sys::kIocEnable, 0) == 0;
  }
  bool Stop() { return ioctl(fd_, perfkit::sys::kIocDisable, 0) == 0 && sigaction(SIGTRAP, &before_, nullptr) == 0; }
  static uint64_t taken() { return signals; }

 private:
  static constexpr size_t kRingBytes = 129 << 12;

  static inline volatile uint64_t signals = 0;

  int fd_ = -1;
  void* ring_ = MAP_FAILED;
  struct sigaction before_ {};
};

}  // namespace bench
