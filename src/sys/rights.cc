// Asks the kernel for the effective capabilities, and reads perf_event_paranoid and the user namespace from procfs.
#include "src/sys/rights.h"

#include <errno.h>
#include <linux/capability.h>

#include <array>

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

// Returns the effective capabilities of the calling thread as bits; 0 if the kernel does not say. Capabilities belong
// to threads, and the kernel asks for those of the thread that opens the event.
uint64_t EffectiveCapabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> halves{};
  if (kernel().capget(&header, halves.data()) != 0) return 0;
  return halves[0].effective | uint64_t{halves[1].effective} << 32;
}

// Asks the kernel, for a thread with CAP_PERFMON: records of namespaces require it in the initial user namespace,
// whatever the paranoid level (perf_event_open in kernel/events/core.c, since Linux 4.12).
bool CapabilitiesCount() {
  PerfEventAttr attr{};
  attr.type = kTypeSoftware;
  attr.config = kSwDummy;
  attr.exclude_kernel = attr.exclude_hv = attr.namespaces = 1;
  attr.size = AttrSize(attr);
  const OwnedFd fd(kernel().perf_event_open(&attr, 0, -1, -1, kOpenFdCloexec));
  return fd || errno != EACCES;
}

// Returns true in a user namespace other than the initial one; false also if that cannot be told, without procfs and
// without CAP_PERFMON. `is_capable`: the thread has CAP_PERFMON there. The
// number is USER_NS_INIT_INO of include/uapi/linux/nsfs.h (PROC_USER_INIT_INO before).
bool InUserNamespace(const std::string& proc, bool is_capable) {
  const std::string target = LinkTarget(proc + "/thread-self/ns/user");
  if (!target.empty()) return target != "user:[4026531837]";
  // Kernels without user namespaces have no such link, and without procfs there is none to read.
  return is_capable && !Exists(proc + "/thread-self") && !CapabilitiesCount();
}

}  // namespace

Rights ReadRights(const std::string& proc) {
  const uint64_t set = EffectiveCapabilities();
  const bool is_admin = (set >> kCapSysAdmin & 1) != 0;
  const bool may = (set >> kCapPerfmon & 1) != 0 || is_admin, is_elsewhere = InUserNamespace(proc, may);
  return {.paranoid = ReadParanoid(proc),
          .euid = kernel().geteuid(),
          .perfmon = may && !is_elsewhere,
          .perfmon_elsewhere = may && is_elsewhere,
          .sys_admin = is_admin && !is_elsewhere,
          .in_user_namespace = is_elsewhere};
}

std::string DescribeRights(const Rights& rights) {
  const std::string level = rights.paranoid ? absl::StrFormat("is %d", *rights.paranoid) : "cannot be read";
  return absl::StrFormat("kernel.perf_event_paranoid %s, uid %d, %s CAP_PERFMON%s", level, rights.euid,
                         rights.perfmon ? "with" : "without",
                         rights.perfmon_elsewhere ? " (that of a user namespace of its own does not count)" : "");
}

std::string_view WhereRightsCount(std::string_view remedy, const Rights& rights) {
  const bool names_rights =
      remedy.find("CAP_") != std::string_view::npos || remedy.find("root") != std::string_view::npos;
  if (!rights.in_user_namespace || !names_rights) return "";
  return "; root and capabilities count only outside of this user namespace";
}

}  // namespace perfkit::sys
