// Describes in a few words what this machine can count, for lines of reports without room for a whole Status.
//
// Hardware events fail mostly for one reason: a virtual machine without a PMU. There, the general reason is "no PMU of
// this machine has that event", but "no PMU" also says that other hardware events will fail, too.
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/format.h"
#include "src/base/text.h"
#include "src/event/pmu.h"
#include "src/sys/files.h"
#include "src/sys/perf_abi.h"
#include "src/sys/perf_error.h"
#include "src/sys/rights.h"

namespace perfkit {
namespace {

// Returns true for perf_event_attr.type of events that a core PMU counts.
constexpr bool NeedsCorePmu(uint32_t type) {
  return type == sys::kTypeHardware || type == sys::kTypeHwCache || type == sys::kTypeRaw;
}

// Returns the names of the core PMUs, separated by '+'; "" if there is none.
std::string CorePmus(const EventRoots& roots) {
  std::string names;
  for (const std::string& name : event::PmuNames(roots)) {
    const absl::StatusOr<event::Pmu> pmu = event::LoadPmu(roots, name);
    if (!pmu.ok() || !pmu->core) continue;
    if (!names.empty()) names += '+';
    names += name;
  }
  return names;
}

// All parts must need one: an event with a part that any machine counts does not fail for want of a PMU.
bool IsHardware(const EventConfig& event) {
  for (const EventConfig::Part& part : event.parts) {
    if (!NeedsCorePmu(part.type)) return false;
  }
  return !event.parts.empty();
}

}  // namespace

std::string FormatReason(const EventConfig& event, const absl::Status& reason) {
  if (reason.code() == absl::StatusCode::kUnavailable && IsHardware(event) && CorePmus({}).empty()) return "no PMU";
  return sys::CauseOf(reason);
}

std::string FormatMachine(const EventRoots& roots) {
  std::string line = "Linux";
  const absl::StatusOr<std::string> release = sys::ReadFile(roots.proc + "/sys/kernel/osrelease");
  if (release.ok()) absl::StrAppendFormat(&line, " %s", base::Trim(*release));
  const std::string pmus = CorePmus(roots);
  line += pmus.empty() ? ", no PMU" : ", PMU " + pmus;
  const sys::Rights rights = sys::ReadRights(roots.proc);
  if (rights.paranoid) absl::StrAppendFormat(&line, ", perf_event_paranoid %d", *rights.paranoid);
  absl::StrAppendFormat(&line, ", uid %d%s", rights.euid, rights.perfmon ? " with CAP_PERFMON" : "");
  return line;
}

}  // namespace perfkit
