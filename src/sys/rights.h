// What this process may do with perf events, and which knob says so.
//
// One place reads perf_event_paranoid and the capability sets; errors, the retry ladder and the doctor all quote it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace perfkit::sys {

struct Rights {
  // /proc/sys/kernel/perf_event_paranoid; nothing when it cannot be read (no perf in this kernel, or a sandbox).
  std::optional<int> paranoid;
  uint32_t euid = 0;
  // Effective CAP_PERFMON or CAP_SYS_ADMIN: the paranoid level does not bind this process.
  bool perfmon = false;

  // Whether events of this process's own threads may include what the kernel does on their behalf.
  bool may_count_kernel() const { return perfmon || (paranoid && *paranoid <= 1); }
  // Whether a whole CPU may be watched.
  bool may_watch_cpus() const { return perfmon || (paranoid && *paranoid <= 0); }
};

// Reads the knobs now. `proc` is where procfs is mounted (tests put a copy elsewhere).
Rights ReadRights(const std::string& proc = "/proc");

// "kernel.perf_event_paranoid is 2, uid 1000, without CAP_PERFMON".
std::string DescribeRights(const Rights& rights);

}  // namespace perfkit::sys
