// Probes of events at addresses: tracepoints in the kernel, uprobes in code, breakpoints on memory. Each counts
// something that this process does by itself, because such events may open and yet never count.
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "src/doctor/examples.h"
#include "src/doctor/findings.h"
#include "src/doctor/try_event.h"
#include "src/doctor/try_open.h"
#include "src/event/attr.h"
#include "src/event/tracepoint.h"
#include "src/open/open_event.h"
#include "src/sys/files.h"

namespace perfkit::doctor {
namespace {

EventRoots RootsOf(const Context& context) { return {.sysfs = context.sysfs, .tracefs = {}, .proc = context.proc}; }

absl::StatusOr<EventConfig> ExampleOf(EventCategory category, const Context& context) {
  for (const Example& example : ExamplesHere(context.workload, context.proc)) {
    if (example.category == category) return ParseEvent(example.name, RootsOf(context));
  }
  return absl::UnavailableError("there is no example of it on this machine");
}

Finding CountExample(EventCategory category, Work raised_by, Context& context) {
  if (!context.has_perf) return NeedsPerf();
  const absl::StatusOr<EventConfig> event = ExampleOf(category, context);
  if (!event.ok()) return Finding::Unnamed(event.status());
  const Verdict verdict = TryEvent(*event, raised_by, context.workload);
  if (verdict.usability != Usability::kCounts) return Finding::Missing(verdict.usable);
  return Finding::Present(absl::StrFormat("counted %d %s", verdict.value, WorkName(raised_by)));
}

// Returns text such as "4 at once on a thread". The kernel answers ENOSPC to the first one too many.
std::string BreakpointsAtOnce(const EventConfig& event, const sys::Rights& rights) {
  constexpr size_t kMax = 32;
  std::vector<open::OpenedEvent> events;
  bool ran_out = false;
  while (events.size() < kMax) {
    open::OpenRequest request;
    request.attr = event::ToAttr(event, event.parts[0]);
    request.asked = event.name;
    absl::StatusOr<open::OpenedEvent> opened = open::OpenEvent(request, rights);
    ran_out = LacksDescriptor(opened.status());
    if (!opened.ok()) break;
    events.push_back(*std::move(opened));
  }
  return ran_out ? absl::StrFormat("at least %d at once on a thread; descriptors ran out", events.size())
                 : absl::StrFormat("%d at once on a thread", events.size());
}

// The mount point of tracefs is in sysfs, and procfs says where it is mounted: the row's remedy needs both.
Finding NoTracefs(const absl::Status& status, const Context& context) {
  if (!sys::IsMounted(sys::KernelFiles::kProc, context.proc)) return Finding::Unnamed(status);
  Finding finding = Finding::Missing(status);
  if (!sys::IsMounted(sys::KernelFiles::kSysfs, context.sysfs)) {
    finding.remedy = absl::StrFormat("as root: mount -t sysfs sysfs %s; mount -t tracefs tracefs %s/kernel/tracing.",
                                     context.sysfs, context.sysfs);
  }
  return finding;
}

}  // namespace

Finding ProbeTracepoints(Context& context) {
  if (!context.has_perf) return NeedsPerf();
  const absl::StatusOr<std::string> tracefs = event::TracefsFolder(RootsOf(context));
  if (!tracefs.ok()) return NoTracefs(tracefs.status(), context);
  const Verdict any = TryEvent("sched:sched_switch", Work::kSleep, context.workload, RootsOf(context));
  if (any.usability == Usability::kCounts) {
    return Finding::Present(absl::StrFormat("all groups under %s", *tracefs));
  }
  // With exclude_kernel, tracepoints of system calls still count; most others count 0. So for ordinary users the answer
  // may be "some".
  const Verdict calls = TryEvent("syscalls:sys_enter_getpid", Work::kCalls, context.workload, RootsOf(context));
  // sched_switch's reason is the better one: it is about rights, if rights are what is missing.
  if (calls.usability != Usability::kCounts) return Finding::Missing(any.usable);
  return Finding::Present("those of system calls (syscalls:*) only; the others are raised in kernel code");
}

Finding ProbeUprobes(Context& context) { return CountExample(EventCategory::kUprobe, Work::kProbe, context); }

Finding ProbeBreakpoints(Context& context) {
  Finding finding = CountExample(EventCategory::kBreakpoint, Work::kWrites, context);
  if (finding.state != CapabilityState::kPresent) return finding;
  const absl::StatusOr<EventConfig> event = ExampleOf(EventCategory::kBreakpoint, context);
  if (event.ok()) finding.found = BreakpointsAtOnce(*event, context.rights);
  return finding;
}

}  // namespace perfkit::doctor
