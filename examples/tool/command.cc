// An ignored signal stays ignored after fork and exec, so SIGCHLD is restored for the fork.
#include "command.h"

#include <csignal>

namespace tool {

absl::StatusOr<perfkit::Child> SpawnCommand(const std::vector<std::string>& command) {
  static const auto inherited = std::signal(SIGCHLD, SIG_DFL);
  std::signal(SIGCHLD, inherited);
  absl::StatusOr<perfkit::Child> child = perfkit::Child::Spawn(command);
  std::signal(SIGCHLD, SIG_DFL);
  return child;
}

}  // namespace tool
