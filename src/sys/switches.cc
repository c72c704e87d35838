// Reads getrusage(RUSAGE_THREAD), and sleeps until its counts have changed.
#include "src/sys/switches.h"

#include <sys/resource.h>
#include <time.h>

#include "src/sys/kernel.h"

#ifndef RUSAGE_THREAD
#define RUSAGE_THREAD 1
#endif

namespace perfkit::sys {

std::optional<uint64_t> ThreadSwitches() noexcept {
  rusage usage{};
  if (kernel().getrusage(RUSAGE_THREAD, &usage) != 0) return std::nullopt;
  return static_cast<uint64_t>(usage.ru_nvcsw + usage.ru_nivcsw);
}

// A sleep may end before its thread has left the CPU: if a hypervisor takes the CPU away meanwhile, or if a real-time
// thread, whose sleeps are exact to the nanosecond, sleeps too briefly. So each sleep is longer than the previous one:
// 19 ms in all, though a sleep of one nanosecond usually suffices.
bool SwitchAway() noexcept {
  constexpr long kLongestNs = 1 << 24;
  const std::optional<uint64_t> before = ThreadSwitches();
  for (long ns = 1; ns <= kLongestNs; ns *= 8) {
    const timespec nap{0, ns};
    kernel().nanosleep(&nap);
    const std::optional<uint64_t> now = ThreadSwitches();
    if (!before || !now) return false;
    if (*now != *before) return true;
  }
  return false;
}

}  // namespace perfkit::sys
