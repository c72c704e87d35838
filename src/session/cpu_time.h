// Measures what the calling thread does for a session.
#pragma once

#include <time.h>

#include <cstdint>

#include "src/sys/clock.h"

namespace perfkit::session {

// Adds the CPU time that the calling thread takes while this exists.
class CpuTime {
 public:
  explicit CpuTime(uint64_t& sum_ns) : sum_ns_(sum_ns) {}
  ~CpuTime() { sum_ns_ += sys::ClockNs(CLOCK_THREAD_CPUTIME_ID) - began_ns_; }
  CpuTime(const CpuTime&) = delete;
  CpuTime& operator=(const CpuTime&) = delete;

 private:
  uint64_t& sum_ns_;
  const uint64_t began_ns_ = sys::ClockNs(CLOCK_THREAD_CPUTIME_ID);
};

}  // namespace perfkit::session
