// Kernels that return wrong results: hardware events that open and count nothing, or count something else; sleeps that
// end at once.
#pragma once

#include "tests/support/fake_kernel.h"

namespace perfkit::testing {

// Opens the software event kConfig instead of each event of a CPU's counters.
template <uint64_t kConfig>
int OpenSoftwareInstead(const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
  sys::PerfEventAttr changed = *attr;
  const bool of_a_cpu =
      attr->type == sys::kTypeHardware || attr->type == sys::kTypeHwCache || attr->type == sys::kTypeRaw;
  if (of_a_cpu) {
    changed.type = sys::kTypeSoftware;
    changed.config = kConfig;
  }
  return sys::kLinux.perf_event_open(&changed, pid, cpu, group, flags);
}

// As on some virtual machines: hardware events open, and stay 0.
inline void MakeHardwareSilent(FakeKernel& fake) { fake.below().perf_event_open = OpenSoftwareInstead<sys::kSwDummy>; }

// As on some virtual machines: breakpoints open, and stay 0.
inline void MakeBreakpointsSilent(FakeKernel& fake) {
  fake.below().perf_event_open = [](const sys::PerfEventAttr* attr, pid_t pid, int cpu, int group, unsigned long flags) {
    sys::PerfEventAttr changed = *attr;
    if (attr->type == sys::kTypeBreakpoint) {
      changed.type = sys::kTypeSoftware;
      changed.config = sys::kSwDummy;
      changed.config1 = changed.config2 = changed.bp_type = 0;
    }
    return sys::kLinux.perf_event_open(&changed, pid, cpu, group, flags);
  };
}

// A machine whose hardware events all count, namely nanoseconds.
inline void MakeHardwareCount(FakeKernel& fake) {
  fake.below().perf_event_open = OpenSoftwareInstead<sys::kSwTaskClock>;
}

// A machine on which sleeps of less than 0.2 ms end before their thread has left the CPU. This happens sometimes when a
// hypervisor takes the CPU away between the start of the timer and the switch.
inline void MakeShortSleepsNone(FakeKernel& fake) {
  fake.below().nanosleep = [](const timespec* time) {
    return time->tv_sec == 0 && time->tv_nsec < 200'000 ? 0 : sys::kLinux.nanosleep(time);
  };
}

}  // namespace perfkit::testing
