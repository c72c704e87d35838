// Reads perf_event_paranoid, the effective capabilities and the user namespace from procfs.
#include "src/sys/rights.h"

#include "absl/strings/str_format.h"
#include "src/base/number.h"
#include "src/base/text.h"
#include "src/sys/files.h"
#include "src/sys/kernel.h"

namespace perfkit::sys {
namespace {

// Bit numbers of include/uapi/linux/capability.h. CAP_SYS_ADMIN includes CAP_PERFMON, which Linux 5.8 split off from it
// (perfmon_capable in include/linux/capability.h).
constexpr unsigned kCapSysAdmin = 21;
constexpr unsigned kCapPerfmon = 38;

std::optional<int> ReadParanoid(const std::string& proc) {
  const auto text = ReadFile(proc + "/sys/kernel/perf_event_paranoid");
  if (!text.ok()) return std::nullopt;
  return base::ParseNumber<int>(base::Trim(*text));
}

// Linux before 3.8, and kernels without user namespaces, have no such link. The number is USER_NS_INIT_INO of
// include/uapi/linux/nsfs.h (PROC_USER_INIT_INO before).
bool InInitialUserNamespace(const std::string& proc) {
  const std::string target = LinkTarget(proc + "/thread-self/ns/user");
  return target.empty() || target == "user:[4026531837]";
}

// Returns the effective capabilities as bits; 0 if they cannot be read.
uint64_t EffectiveCapabilities(const std::string& proc) {
  // Capabilities belong to threads, and the kernel asks for those of the thread that opens the event.
  const auto text = ReadFile(proc + "/thread-self/status");
  if (!text.ok()) return 0;
  uint64_t set = 0;
  base::ForEachPiece(*text, '\n', [&](std::string_view line) {
    const auto [key, value] = base::Cut(line, ':');
    if (key != "CapEff") return;
    set = base::ParseNumber(base::Trim(value), 16).value_or(0);
  });
  return set;
}

}  // namespace

Rights ReadRights(const std::string& proc) {
  const uint64_t set = EffectiveCapabilities(proc);
  const bool is_admin = (set >> kCapSysAdmin & 1) != 0;
  const bool may = (set >> kCapPerfmon & 1) != 0 || is_admin, counts = InInitialUserNamespace(proc);
  return {.paranoid = ReadParanoid(proc),
          .euid = kernel().geteuid(),
          .perfmon = may && counts,
          .perfmon_elsewhere = may && !counts,
          .sys_admin = is_admin && counts};
}

std::string DescribeRights(const Rights& rights) {
  const std::string level = rights.paranoid ? absl::StrFormat("is %d", *rights.paranoid) : "cannot be read";
  return absl::StrFormat("kernel.perf_event_paranoid %s, uid %d, %s CAP_PERFMON%s", level, rights.euid,
                         rights.perfmon ? "with" : "without",
                         rights.perfmon_elsewhere ? " (that of a user namespace of its own does not count)" : "");
}

}  // namespace perfkit::sys
