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

// Returns a warning if the kernel counted only a part of a command's CPU time; "" otherwise. `counted_ns` must include
// its children.
std::string UncountedText(const perfkit::ExitStatus& ended, uint64_t counted_ns);

}  // namespace tool
