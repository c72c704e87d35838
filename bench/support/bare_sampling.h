// The kernel's part of a session, without perfkit: the same clock, sampled at the same rate on the calling thread and
// on those that it starts later, into rings that nothing reads. With signals, an empty handler is called at each
// sample: the minimum for stacks that a handler walks.
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "src/sys/perf_abi.h"

namespace bench {

// Runs while it exists.
class BareSampling {
 public:
  BareSampling(std::chrono::nanoseconds interval, bool signals) {
    if (signals) {
      struct sigaction action {};
      action.sa_sigaction = [](int, siginfo_t*, void*) {};
      action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
      sigaction(SIGTRAP, &action, nullptr);
    }
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);
    // Inherited events have a ring only if they are of one CPU. Offline CPUs have none.
    for (int cpu = 0; cpu < cpus; ++cpu) Open(interval, signals, cpu);
  }
  ~BareSampling() {
    for (const Ring& ring : rings_) {
      munmap(ring.memory, Bytes());
      close(ring.fd);
    }
  }
  BareSampling(const BareSampling&) = delete;
  BareSampling& operator=(const BareSampling&) = delete;

  bool opened() const { return !rings_.empty(); }

 private:
  struct Ring {
    int fd;
    void* memory;
  };

  static size_t Bytes() { return 17 * static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

  void Open(std::chrono::nanoseconds interval, bool signals, int cpu) {
    perfkit::sys::PerfEventAttr attr{};
    attr.size = sizeof(attr);
    attr.type = perfkit::sys::kTypeSoftware;
    attr.config = perfkit::sys::kSwCpuClock;
    attr.sample_period_or_freq = static_cast<uint64_t>(interval.count());
    attr.sample_type = perfkit::sys::kSampleIp | perfkit::sys::kSampleTid | perfkit::sys::kSampleTime;
    attr.exclude_kernel = attr.exclude_hv = attr.inherit = 1;
    attr.inherit_thread = attr.remove_on_exec = attr.sigtrap = signals ? 1 : 0;
    const int fd = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, cpu, -1, perfkit::sys::kOpenFdCloexec));
    if (fd < 0) return;
    void* const memory = mmap(nullptr, Bytes(), PROT_READ, MAP_SHARED, fd, 0);  // the kernel overwrites it
    if (memory == MAP_FAILED) {
      close(fd);
    } else {
      rings_.push_back({fd, memory});
    }
  }

  std::vector<Ring> rings_;
};

}  // namespace bench
