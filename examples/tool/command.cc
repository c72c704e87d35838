// An ignored signal stays ignored after fork and exec, so SIGCHLD is restored for the fork.
#include "command.h"

#include <absl/strings/str_format.h>
#include <time.h>

#include <csignal>

#include "task_watch.h"

namespace tool {

absl::StatusOr<perfkit::Child> SpawnCommand(const std::vector<std::string>& command) {
  static const auto inherited = std::signal(SIGCHLD, SIG_DFL);
  std::signal(SIGCHLD, inherited);
  absl::StatusOr<perfkit::Child> child = perfkit::Child::Spawn(command);
  std::signal(SIGCHLD, SIG_DFL);
  return child;
}

void EndCommand(const perfkit::Child& command) {
  if (HasEnded(command.pid())) return;
  kill(command.pid(), SIGTERM);
  kill(command.pid(), SIGCONT);  // a stopped process takes no other signal
}

uint64_t CpuTimeNs(const perfkit::Child& command) {
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(command.pid(), &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// The clocks differ a little: small differences are no sign.
std::string UncountedText(uint64_t cpu_ns, uint64_t uncounted_ns, uint64_t counted_ns) {
  constexpr uint64_t kUnseenNs = 5'000'000;
  if (cpu_ns <= uncounted_ns + counted_ns + counted_ns / 4 + kUnseenNs) return "";
  return absl::StrFormat(
      "the command used %.1f ms of CPU time. The kernel counted %.1f ms of it. It does not count programs that gain "
      "privileges (setuid), or whose file this user may not read. Remedy: run as root, or grant CAP_PERFMON.",
      static_cast<double>(cpu_ns) / 1e6, static_cast<double>(counted_ns) / 1e6);
}

}  // namespace tool
