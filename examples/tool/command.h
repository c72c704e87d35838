// Starts the command of stat and record.
#pragma once

#include <perfkit/child.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace tool {

// Child::Spawn, also if this tool was started with SIGCHLD ignored: the kernel would then reap the command and drop its
// exit code (man 2 wait). The command inherits what this tool inherited; the tool itself goes on with SIG_DFL. Errors:
// as Child::Spawn. Not thread-safe.
absl::StatusOr<perfkit::Child> SpawnCommand(const std::vector<std::string>& command);

}  // namespace tool
