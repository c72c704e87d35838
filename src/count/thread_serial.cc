// Serial numbers of threads, without a counter that all threads share.
#include <time.h>

#include "perfkit/count.h"
#include "src/sys/kernel.h"

namespace perfkit::detail {

namespace {

uint64_t NowNs() noexcept {
  timespec now{};
  sys::kernel().clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

constinit thread_local uint64_t thread_serial = 0;

// A thread id is unique among living threads, and Linux has at most 2^22 of them (PID_MAX_LIMIT). The 42 bits of time
// tell threads apart that have the same id one after the other: two would have to be asked for their serial at the same
// nanosecond of a cycle of 73 minutes.
uint64_t AssignThreadSerial() noexcept {
  constexpr unsigned kTidBits = 22;
  const uint64_t serial = static_cast<uint64_t>(sys::kernel().gettid()) | NowNs() << kTidBits;
  thread_serial = serial;
  return serial;
}

}  // namespace perfkit::detail
