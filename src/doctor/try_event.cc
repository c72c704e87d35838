// Counts the workload by a set with one event, and judges the count: counted, open but without proof, or silent. Events
// are counted as users count them, by a CounterSet, so that the verdict includes the read path.
#include "src/doctor/try_event.h"

#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "perfkit/counter.h"

namespace perfkit::doctor {
namespace {

absl::Status NeverScheduled(const EventConfig& event) {
  return absl::ResourceExhaustedError(absl::StrFormat(
      "event '%s': it opens, but was never on a counter: another user holds them all. Remedy: stop other profilers; on "
      "x86 the NMI watchdog holds one too (kernel.nmi_watchdog=0 frees it).",
      event.name));
}

absl::Status Silent(const EventConfig& event, Work raised_by) {
  return absl::UnavailableError(absl::StrFormat(
      "event '%s': it opens, but %s left it at 0: this kernel or virtual machine does not count it. Remedy: do not use "
      "its numbers; where the hypervisor can pass on a PMU, enable that.",
      event.name, WorkName(raised_by)));
}

Verdict Judge(const EventConfig& event, Work raised_by, const Count& count, ReadPath path) {
  Verdict verdict{.usability = Usability::kCounts, .usable = {}, .value = count.value, .path = path};
  if (count.validity.counted() && count.value > 0) return verdict;
  // Enabled but never running: the event waits for a counter.
  if (!count.validity.counted() || (count.time_enabled_ns > 0 && count.time_running_ns == 0)) {
    verdict.usability = Usability::kSilent;
    verdict.usable = NeverScheduled(event);
  } else if (raised_by == Work::kNothing) {
    verdict.usability = Usability::kOpens;
  } else {
    verdict.usability = Usability::kSilent;
    verdict.usable = Silent(event, raised_by);
  }
  return verdict;
}

}  // namespace

Verdict TryEvent(const EventConfig& event, Work raised_by, Workload& workload) {
  const std::vector<std::vector<EventConfig>> groups = {{event}};
  const Target target = event.cpu_wide_only ? Target::System() : Target::ThisThread();
  const absl::StatusOr<CounterSet> set = CounterSet::Open(groups, target);
  if (!set.ok()) return {.usability = Usability::kRefused, .usable = set.status(), .value = 0, .path = {}};
  Snapshot begin, end;
  set->Read(begin);
  workload.Run();
  set->Read(end);
  return Judge(event, raised_by, set->Difference(begin, end, 0), set->path(0));
}

Verdict TryEvent(std::string_view name, Work raised_by, Workload& workload, const EventRoots& roots) {
  const absl::StatusOr<EventConfig> event = ParseEvent(name, roots);
  if (!event.ok()) return {.usability = Usability::kRefused, .usable = event.status(), .value = 0, .path = {}};
  return TryEvent(*event, raised_by, workload);
}

}  // namespace perfkit::doctor
