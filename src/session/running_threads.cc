// A thread's CPU clock goes on while the thread is on a CPU, and stands still while it waits for one. Each read is
// exact: the kernel first adds the time of a thread that is on a CPU (task_sched_runtime in kernel/sched/core.c).
#include "src/session/running_threads.h"

#include <time.h>

#include <algorithm>
#include <cstdint>

#include "src/proc/blocked_call.h"
#include "src/sys/clock.h"

namespace perfkit::session {
namespace {

// A hypervisor may take a CPU away from its thread for some time.
constexpr uint64_t kMaxWaitNs = 1'000'000;

// Returns the CPU time of a thread; 0 if it has ended.
uint64_t CpuNs(pid_t tid) { return sys::ClockNs(sys::ThreadCpuClock(tid)); }

struct Candidate {
  size_t index = 0;  // in `tids`
  uint64_t cpu_ns = 0;
};

}  // namespace

std::vector<bool> AreOnCpu(std::span<const pid_t> tids) {
  std::vector<bool> on_cpu(tids.size());
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < tids.size(); ++i) {
    if (proc::ReadState(tids[i]) == 'R') candidates.push_back({i, CpuNs(tids[i])});
  }
  const uint64_t began_ns = sys::ClockNs(CLOCK_MONOTONIC);
  do {
    std::erase_if(candidates, [&](const Candidate& one) {
      const bool moved = CpuNs(tids[one.index]) > one.cpu_ns;
      if (moved) on_cpu[one.index] = true;
      return moved;
    });
  } while (!candidates.empty() && sys::ClockNs(CLOCK_MONOTONIC) - began_ns < kMaxWaitNs);
  return on_cpu;
}

}  // namespace perfkit::session
