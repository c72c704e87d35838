// Starts the command of stat and record.
#pragma once

#include <perfkit/child.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tool {

// Child::Spawn, also if this tool was started with SIGCHLD ignored: the kernel would then reap the command and drop its
// exit code (man 2 wait). The command inherits what this tool inherited; the tool itself goes on with SIG_DFL. Errors:
// as Child::Spawn. Not thread-safe.
absl::StatusOr<perfkit::Child> SpawnCommand(const std::vector<std::string>& command);

// Ends a command that may still run, also if it is stopped: it receives SIGTERM.
void EndCommand(const perfkit::Child& command);

// Returns the CPU time that a command has used, in nanoseconds, before and after its exec. Must be called before
// Child::Wait.
uint64_t CpuTimeNs(const perfkit::Child& command);

// Returns a warning if the kernel counted only a part of the CPU time of a command; "" otherwise. `cpu_ns`: CpuTimeNs
// while it runs, ExitStatus::cpu_ns at its end. `uncounted_ns`: CpuTimeNs after Child::Start, as nothing is counted
// before the exec. `counted_ns` must include the command's children.
std::string UncountedText(uint64_t cpu_ns, uint64_t uncounted_ns, uint64_t counted_ns);

}  // namespace tool
