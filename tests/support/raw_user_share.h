// How much of its time a thread spends in user mode, by samples that the kernel takes alone.
#pragma once

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "tests/support/work.h"

namespace perfkit::testing {

// Returns the share of the calling thread's CPU time in `work` in which the kernel's timer, each 100 us, found it in user
// mode. On some hypervisors most of what a page fault takes is outside of the guest's kernel: then it looks like time
// of the instruction that faulted.
template <class Work>
double UserShareOf(Work&& work) {
  constexpr uint64_t kPeriodNs = 100'000;
  constexpr size_t kRingBytes = size_t{8} << 12;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  perf_event_attr attr = {};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  attr.sample_period = kPeriodNs;
  attr.exclude_kernel = attr.disabled = 1;
  const int fd = static_cast<int>(syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
  void* const ring = mmap(nullptr, page + kRingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || ring == MAP_FAILED) std::abort();
  const uint64_t from_ns = NowNs(CLOCK_THREAD_CPUTIME_ID);
  ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
  work();
  ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
  const uint64_t passed_ns = std::max<uint64_t>(NowNs(CLOCK_THREAD_CPUTIME_ID) - from_ns, 1);
  // With no field asked for, a sample is a header of 8 bytes.
  const uint64_t samples = static_cast<perf_event_mmap_page*>(ring)->data_head / sizeof(perf_event_header);
  munmap(ring, page + kRingBytes);
  close(fd);
  return std::min(1.0, static_cast<double>(samples * kPeriodNs) / static_cast<double>(passed_ns));
}

}  // namespace perfkit::testing
