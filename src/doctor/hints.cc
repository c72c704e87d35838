// Looks for files that are typical of containers, virtual machines and locked kernels: one table.
#include "src/doctor/hints.h"

#include <string_view>

#include "src/base/text.h"
#include "src/sys/files.h"

namespace perfkit::doctor {
namespace {

// Matches if a line of `path` has both words, or, with an empty `key`, if the file exists.
struct HintRow {
  const char* path;
  std::string_view key, value;
  const char* hint;
};

constexpr HintRow kHintRows[] = {
    {"/proc/self/status", "Seccomp:", "2",
     "A seccomp filter holds this process: where a call is refused with EPERM although the rights permit it, the "
     "filter "
     "did it (Docker: --security-opt seccomp=..., or --cap-add PERFMON; Kubernetes: securityContext)."},
    {"/.dockerenv", "", "", "This is a Docker container: kernel settings are the host's, and are changed there."},
    {"/run/.containerenv", "", "",
     "This is a Podman container: kernel settings are the host's, and are changed there."},
    {"/proc/version", "icrosoft", "", "This is WSL: it has a PMU only with Hyper-V's perfmon setting."},
    {"/proc/cpuinfo", "flags", " hypervisor",
     "This is a virtual machine: it has hardware counters only where its hypervisor passes them on (KVM: the host CPU "
     "model with pmu=on; VMware: virtual CPU performance counters; clouds: the larger or metal machine types)."},
    {"/sys/kernel/security/lockdown", "[confidentiality]", "",
     "The kernel is locked down (confidentiality): no user may read tracepoints and kernel addresses."},
    {"/proc/sys/kernel/nmi_watchdog", "1", "",
     "The NMI watchdog is on: on x86 it takes one hardware counter for itself (kernel.nmi_watchdog=0 frees it)."},
};

bool HasLine(std::string_view text, std::string_view key, std::string_view value) {
  bool found = false;
  base::ForEachPiece(text, '\n', [&](std::string_view line) {
    const size_t at = line.find(key);
    found = found || (at != std::string_view::npos && line.find(value, at + key.size()) != std::string_view::npos);
  });
  return found;
}

bool Applies(const HintRow& row, const std::string& root) {
  if (row.key.empty()) return sys::Exists(root + row.path);
  const auto text = sys::ReadFile(root + row.path);
  return text.ok() && HasLine(*text, row.key, row.value);
}

}  // namespace

std::vector<std::string> CollectHints(const std::string& root) {
  std::vector<std::string> hints;
  for (const HintRow& row : kHintRows) {
    if (Applies(row, root)) hints.emplace_back(row.hint);
  }
  return hints;
}

}  // namespace perfkit::doctor
